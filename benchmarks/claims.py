"""The numbers behind docs/paper.md, from the recorded studies: python benchmarks/claims.py

One function per claim of the paper; each prints what the files in results/ say, medians over seeds unless it says otherwise.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent.parent / "results"
TASKS = ["easy", "medium", "difficult"]


class Study:
    """The two files of a recorded study."""

    def __init__(self, name: str):
        self.summary = json.loads((RESULTS / name / "summary.json").read_text())
        self.history = dict(np.load(RESULTS / name / "history.npz"))

    def runs(self, model: str, task: str) -> list[dict]:
        return [run for run in self.summary["runs"] if (run["model"], run["task"]) == (model, task)]

    def values(self, model: str, task: str, name: str) -> np.ndarray:
        return np.array([np.inf if run[name] is None else run[name] for run in self.runs(model, task)], float)

    def curves(self, model: str, task: str, name: str) -> Iterator[np.ndarray]:
        for run in self.runs(model, task):
            yield self.history[f"{model}/{task}/{run['seed']}/{name}"]


def size_follows_difficulty(study: Study) -> None:
    for model in ("tunnel", "budding"):
        sizes = [study.values(model, task, "soft_size") for task in TASKS]
        ordered = np.mean([(a < b) & (b < c) for a, b, c in zip(*sizes, strict=True)])
        medians = ", ".join(f"{np.median(s):.1f}" for s in sizes)
        print(f"  {model}: final soft size {medians}; easy < medium < difficult in {ordered:.0%} of the seeds")


def grows_peaks_shrinks(study: Study) -> None:
    for model in ("tunnel", "budding"):
        for task in ("medium", "difficult"):
            zero = study.values(model, task, "zero_error_epoch")
            peak = np.array([curve.sum(1).argmax() + 1 for curve in study.curves(model, task, "layer_sizes")])
            ratio = study.values(model, task, "peak_soft_size") / study.values(model, task, "soft_size")
            print(
                f"  {model}, {task}: zero error at epoch {np.median(zero):.0f}, peak at {np.median(peak):.0f} "
                f"(peak − zero: {np.median(peak - zero):+.0f}, {np.min(peak - zero):+.0f} to {np.max(peak - zero):+.0f}); "
                f"peak / final {np.median(ratio):.2f}"
            )


def settles_with_the_rate(study: Study) -> None:
    """The mean change of the soft size per epoch at each rate."""
    for model in ("tunnel", "budding"):
        for task in ("medium", "difficult"):
            moves: list[list[float]] = [[], [], []]
            pairs = zip(study.curves(model, task, "layer_sizes"), study.curves(model, task, "stage"), strict=True)
            for sizes, stage in pairs:
                change = np.abs(np.diff(sizes.sum(1)))
                for s in range(3):
                    if (stage[1:] == s).any():
                        moves[s].append(change[stage[1:] == s].mean())
            print(
                f"  {model}, {task}: |Δ size| per epoch at rates 1, 0.3, 0.1: "
                + ", ".join(f"{np.median(m):.4f}" for m in moves)
            )


def layers_used(study: Study, title: str) -> None:
    for task in ("medium", "difficult"):
        peaks = np.array([run["peak_layer_sizes"] for run in study.runs("tunnel", task)])
        finals = np.array([run["layer_sizes"] for run in study.runs("tunnel", task)])
        print(
            f"  {title}, {task}: peak size of layers 1–10, mean over seeds: {' '.join(f'{p:.1f}' for p in peaks.mean(0))}; "
            f"layers 1–5 hold {peaks[:, :5].sum() / peaks.sum():.0%}; layers without any open unit at the end: "
            f"{np.median((finals == 0).sum(1)):.0f} of 10"
        )


def highway_against_tunnel(study: Study) -> None:
    for task in TASKS:
        size = {
            model: np.median(study.values(model, task, "soft_size")) for model in ("tunnel", "highway", "highway-penalized")
        }
        peak = {model: np.median(study.values(model, task, "peak_soft_size")) for model in size}
        print(f"  {task}: final soft size " + ", ".join(f"{m} {s:.1f} (peak {peak[m]:.1f})" for m, s in size.items()))


def as_good_with_fewer_parameters(study: Study) -> None:
    for model in ("tunnel", "highway", "budding"):
        solved = [int(np.isfinite(study.values(model, task, "zero_error_epoch")).sum()) for task in TASKS]
        live = [int(np.median(study.values(model, task, "live_parameters"))) for task in TASKS]
        whole = int(study.values(model, "difficult", "parameters").max())
        print(f"  {model}: solved {solved} of 10 seeds; parameters {whole}, of them live {live}")


def linearity(study: Study) -> None:
    """How much of the picture the best straight line decides alike."""
    for model in ("tunnel", "budding", "highway", "highway-penalized"):
        shares = {}
        for task in TASKS:
            agree = []
            for picture in study.curves(model, task, "discriminant"):
                agree.append(_best_line(picture.astype(float) > 0.5))
            shares[task] = np.median(agree)
        print(f"  {model}: " + ", ".join(f"{task} {share:.1%}" for task, share in shares.items()))


def _best_line(side: np.ndarray) -> float:
    """The share of a picture that logistic regression on the two coordinates decides alike."""
    axis = np.linspace(-1, 1, side.shape[0])
    x, y = np.meshgrid(axis, axis)
    features, target = np.stack([x.ravel(), y.ravel(), np.ones(x.size)], 1), side.ravel()
    weights, best = np.linalg.lstsq(features, np.where(target, 1.0, -1.0), rcond=None)[0], 0.0
    for _ in range(3000):
        best = max(best, ((features @ weights > 0) == target).mean())
        weights = weights + 20 * features.T @ (target - 1 / (1 + np.exp(-features @ weights))) / target.size
    return best


def rates_selected(study: Study) -> None:
    for row in study.summary["rates"]:
        print(f"  {row['model']}, {row['task']}, rate {row['learning_rate']:g}: {row['solved']} of {row['seeds']} solved")


def classic(study: Study) -> None:
    for model in ("tunnel", "budding", "highway", "highway-penalized"):
        solved = np.isfinite(study.values(model, "classic", "zero_error_epoch")).sum()
        error, size = study.values(model, "classic", "train_error"), study.values(model, "classic", "soft_size")
        print(
            f"  {model}: {solved} of {len(error)} solved; best error {np.median(error):.1%} "
            f"({error.min():.1%}–{error.max():.1%}); "
            f"final soft size {np.median(size):.1f}"
        )


def main() -> None:
    study = Study("two-spirals")
    for title, show in {
        "Size follows difficulty at one setting": size_follows_difficulty,
        "Grows, peaks near the zero-error epoch, then shrinks": grows_peaks_shrinks,
        "Sizes settle after the rate is cut": settles_with_the_rate,
        "Highway needs about twice the tunnel's units, a penalised one about as many": highway_against_tunnel,
        "As good as highways with far fewer parameters": as_good_with_fewer_parameters,
        "The easy discriminant is a line: share of the picture that the best line decides alike": linearity,
    }.items():
        print(title)
        show(study)
    print("Earlier layers are used more with 3/4 rates, alike with equal rates")
    layers_used(study, "3/4 rates")
    layers_used(Study("two-spirals-equal-rates"), "equal rates")
    print("The smallest of four rates that reaches zero error")
    rates_selected(Study("two-spirals-select-rate"))
    print("Classic spirals (not in the paper)")
    classic(Study("two-spirals-classic"))


if __name__ == "__main__":
    main()
