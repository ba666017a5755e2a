"""Writes the README's tables from the recorded results, so that no number is typed by hand: python benchmarks/tables.py"""

import json
import re
import statistics
from pathlib import Path

from meristem.experiments.two_spirals import table

ROOT = Path(__file__).parent.parent


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *rows])


def study() -> str:
    return markdown(*table(json.loads((ROOT / "results/two-spirals/summary.json").read_text())["runs"]))


def speed() -> str:
    report = json.loads((ROOT / "results/speed.json").read_text())
    rows = []
    for result in report["results"]:
        if result["block"] == "race":
            ours, theirs = (f"{1e6 * statistics.median(times):.1f} µs" for times in result["seconds"].values())
            rows.append([result["what"], ours, theirs, f"{result['value']:.0f} ×"])
    return markdown(["an online training step", "meristem", "PyTorch", "ratio"], rows)


def main() -> None:
    page = ROOT / "README.md"
    text = page.read_text()
    for name, content in {"table": study(), "speed": speed()}.items():
        text = re.sub(rf"<!-- {name} -->(\n\n\|.*?(?=\n\n))?", f"<!-- {name} -->\n\n{content}", text, flags=re.DOTALL)
    page.write_text(text)


if __name__ == "__main__":
    main()
