"""Writes the tables of docs/results.md from the recorded results, so that none is typed: python benchmarks/tables.py"""

import json
import re
import statistics
from pathlib import Path
from typing import Any

from meristem.experiments import mnist, tagging, two_spirals
from meristem.experiments.study import table
from meristem.show.describe import without_empty

ROOT = Path(__file__).parent.parent


def recorded(name: str) -> Any:
    return json.loads((ROOT / "results" / name).read_text())


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *rows])


def without(names: set[str], columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out columns, each with the paper's beside it, and those of dashes alone."""
    kept, measure = [], ""
    for place, column in enumerate(columns):
        measure = measure if column == "paper" else column
        if measure not in names:
            kept.append(place)
    columns, *rows = [[line[place] for place in kept] for line in [columns, *rows]]
    return without_empty(columns, rows)


def _table(study: Any, runs: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    return table(study.columns, runs, study.paper, study.average)


def spirals() -> str:
    return markdown(*_table(two_spirals.STUDY, recorded("two-spirals/summary.json")["runs"]))


def digits() -> str:
    return markdown(
        *without({"validation", "training", "hard size"}, *_table(mnist.STUDY, recorded("mnist/summary.json")["runs"]))
    )


def labels() -> str:
    """Each model at the setting that it keeps, task by task; on corel5k other ones were tried than on scene."""
    wanted = {
        "mirflickr-select": ("10", "24"),
        "tagging-select": ("scene",),
        "corel5k-select": ("corel5k",),
        "corel5k-budding": ("corel5k",),
    }
    runs = [run for name, tasks in wanted.items() for run in recorded(f"{name}/summary.json")["runs"] if run["task"] in tasks]
    tasks, models = (list(dict.fromkeys(run[name] for run in runs)) for name in ("task", "model"))
    runs.sort(key=lambda run: (tasks.index(run["task"]), models.index(run["model"])))
    return markdown(*without({"training", "epochs", "peak", "kept epoch", "its soft size"}, *_table(tagging.STUDY, runs)))


def speed() -> str:
    rows = []
    for result in recorded("speed.json")["results"]:
        if result["block"] == "race":
            ours, theirs = (f"{1e6 * statistics.median(times):.1f} µs" for times in result["seconds"].values())
            rows.append([f"an online step: {result['what']}", ours, theirs, f"{result['value']:.0f} ×"])
    for result in recorded("mnist-speed-cpu.json")["results"]:
        if result["block"] == "epoch race":
            ours, theirs = (f"{statistics.median(times):.2f} s" for times in result["seconds"].values())
            threads = result["what"].removeprefix("PyTorch, ")
            rows.append([f"an epoch of MNIST, PyTorch on {threads}", ours, theirs, f"{result['value']:.1f} ×"])
    return markdown(["", "meristem", "PyTorch", "ratio"], rows)


def gpu() -> str:
    report = recorded("mnist-speed-gpu.json")
    rows = []
    for result in report["results"]:
        if result["block"] == "steps":
            rows.append([f"meristem: {result['what']}", f"{result['value']:.3g} µs"])
        if result["block"] == "step race":
            rows.append([result["what"], f"{1e6 * statistics.median(result['seconds']['PyTorch']):.0f} µs"])
    return markdown([f"a training step of one network, {report['machine']['device']}", "time"], rows)


def tabular() -> str:
    """Every model of benchmarks/tabular.py, by its mean rank among all."""

    def cell(value: Any, digits: int = 2) -> str:
        return "–" if value is None else f"{value:,.{digits}f}"

    found = recorded("tabular/summary.json")
    columns = ["", "mean rank", "by log-loss", "among single defaults", "parameters, median", "time relative to the MLP grid's"]
    columns += ["settings to choose", "tables clearly behind MLP or linear"]
    rows = [
        [
            name,
            cell(one["rank"]),
            cell(one["log_loss_rank"]),
            cell(one["rank_of_single_defaults"]),
            cell(one["parameters"], 0),
            cell(one["time_of_grid"]),
            str(one["settings_to_choose"]),
            "–" if one["behind"] is None else str(len(one["behind"])),
        ]
        for name, one in sorted(found.items(), key=lambda pair: pair[1]["rank"])
    ]
    return markdown(columns, rows)


def coverage() -> str:
    """What benchmarks/coverage.py recorded: means over tables, and how many larger tables are as close as they must be."""
    record, rows = recorded("coverage.json"), []
    each = list(record["tables"].values())
    for name, key, size in (
        ("intervals of numbers", "coverage", "width"),
        ("linear quantile regression", "linear_coverage", "linear_width"),
        ("quantiles of boosting", "boosting_coverage", "boosting_width"),
        ("sets that are never empty", "coverage", "size"),
        ("sets of classes", "exact_coverage", "empty"),
    ):
        runs = [own for own in each if key in own and size in own]
        if not runs:
            continue
        error = key.replace("coverage", "standard_error")
        large = [own for own in runs if own["rows"] >= 1000 and error in own]
        close = [own for own in large if abs(own[key] - record["coverage"]) <= 0.02 + 2 * own[error]]
        means = (statistics.mean(own[column] for own in runs) for column in (key, size))
        coverage, extent = (f"{mean:.3f}" for mean in means)
        extent = "–" if size == "empty" else extent
        rows.append([name, str(len(runs)), coverage, extent, f"{len(close)} of {len(large)}" if large else "–"])
    columns = ["", "tables", f"mean coverage, {record['coverage']} promised", "mean width or size"]
    return markdown([*columns, "tables of 1,000 rows or more within 2 points and 2 standard errors"], rows)


def tables() -> dict[str, str]:
    """The name in the page's comment → the table below it."""
    return {
        "table": spirals(),
        "mnist": digits(),
        "tagging": labels(),
        "speed": speed(),
        "gpu": gpu(),
        "tabular": tabular(),
        "coverage": coverage(),
    }


def main() -> None:
    page = ROOT / "docs" / "results.md"
    text = page.read_text()
    for name, content in tables().items():
        text = re.sub(rf"<!-- {name} -->(\n\n\|.*?(?=\n\n|\n*\Z))?", f"<!-- {name} -->\n\n{content}", text, flags=re.DOTALL)
    page.write_text(text)


if __name__ == "__main__":
    main()
