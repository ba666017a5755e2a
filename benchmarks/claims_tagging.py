"""The numbers behind docs/paper.md on tagging, from the recorded studies: python benchmarks/claims_tagging.py

At one setting for all (mirflickr, tagging) and at each model's best of several (the others); means over seeds unless it says
otherwise.
"""

import numpy as np

from claims import Study
from meristem.experiments.study import mean_and_sd, table
from meristem.experiments.tagging import STUDY
from meristem.show.describe import describe_settings, print_table

STUDIES = ["mirflickr", "mirflickr-select", "tagging", "tagging-select", "corel5k-select", "corel5k-budding"]


def cells(study: Study) -> list[tuple[str, str]]:
    return list(dict.fromkeys((run["model"], run["task"]) for run in study.summary["runs"]))


def what_was_tried(study: Study) -> None:
    tried = study.summary.get("tried", [])
    for setting, one in zip(describe_settings(tried), tried, strict=True):
        mark = "kept" if one["chosen"] else ""
        print(f"  {one['model']}, {one['task']}: {setting}: {100 * one['dev_macro_f1']:.1f} ± {100 * one['sd']:.1f} {mark}")


def grows_then_shrinks(study: Study) -> None:
    for model, task in cells(study):
        peaks = [int(curve.sum(1).argmax()) + 1 for curve in study.curves(model, task, "layer_sizes")]
        shrunk = study.values(model, task, "soft_size") / study.values(model, task, "peak_soft_size")
        print(f"  {model}, {task}: peak at epoch {np.mean(peaks):.0f}; final / peak {shrunk.mean():.2f}")


def layers_in_use(study: Study) -> None:
    for model, task in cells(study):
        if model != "budding":
            last = np.mean([run["layer_sizes"] for run in study.runs(model, task)], 0)
            shares = f"the first two hold {last[:2].sum() / last.sum():.0%}, the first four {last[:4].sum() / last.sum():.0%}"
            print(f"  {model}, {task}: layers 1–10 end at {' '.join(f'{s:.2g}' for s in last)}; {shares}")


def nodes(study: Study) -> None:
    for model, task in cells(study):
        if model == "budding":
            runs = study.runs(model, task)
            ends, most = ([run[name] for run in runs] for name in ("hard_size", "peak_hard_size"))
            print(f"  {task}: nodes at the end {ends}, most {most}; soft {mean_and_sd([run['soft_size'] for run in runs], 1)}")


CLAIMS = {
    "what was tried": what_was_tried,
    "sizes grow, then shrink": grows_then_shrinks,
    "layers in use": layers_in_use,
    "nodes of the trees": nodes,
}


def main() -> None:
    for name in STUDIES:
        study = Study(name)
        print_table(*table(STUDY.columns, study.summary["runs"], {}), title=f"results/{name}: mean ± sd in %")
        for claim, show in CLAIMS.items():
            print(f"\n{claim} ({name})")
            show(study)


if __name__ == "__main__":
    main()
