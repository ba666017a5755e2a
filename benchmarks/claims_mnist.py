"""The numbers behind docs/paper.md on MNIST, from the recorded study: python benchmarks/claims_mnist.py

One function per claim of the paper; each prints what the files in results/ say, means over seeds unless it says otherwise.
"""

import numpy as np

from claims import Study
from meristem.experiments.mnist import STUDY
from meristem.experiments.study import table
from meristem.show.describe import print_table

TASKS = ["two", "ten"]
STACKS = ["tunnel", "highway", "highway-penalized"]


def grows_then_shrinks(study: Study) -> None:
    for model in [*STACKS, "budding"]:
        for task in TASKS:
            peaks = [int(curve.sum(1).argmax()) + 1 for curve in study.curves(model, task, "layer_sizes")]
            shrunk = study.values(model, task, "soft_size") / study.values(model, task, "peak_soft_size")
            epochs = study.values(model, task, "epochs")
            when = f"peak at {np.mean(peaks):.0f} of {epochs.mean():.0f} epochs"
            print(f"  {model}, {task}: {when}; final / peak {shrunk.mean():.2f}")


def earlier_layers_are_used_more(study: Study) -> None:
    for model in STACKS:
        for task in TASKS:
            last = np.mean([run["layer_sizes"] for run in study.runs(model, task)], 0)
            peaks = np.mean([run["peak_layer_sizes"] for run in study.runs(model, task)], 0)
            print(
                f"  {model}, {task}: layers 1–10 end at {' '.join(f'{s:.2g}' for s in last)}; first layer's peak {peaks[0]:.1f}"
            )


def settles_with_the_rate(study: Study) -> None:
    """The mean change of the soft size per epoch at each rate."""
    for model in STACKS:
        for task in TASKS:
            moves: list[list[float]] = [[], [], []]
            pairs = zip(study.curves(model, task, "layer_sizes"), study.curves(model, task, "stage"), strict=True)
            for sizes, stage in pairs:
                for move, at in zip(np.abs(np.diff(sizes.sum(1))), stage[1:], strict=True):
                    moves[int(at)].append(float(move))
            print(f"  {model}, {task}: {' / '.join(f'{np.mean(one):.3f}' for one in moves)} at rates 1 / 0.3 / 0.1")


def layers_move_alike(study: Study) -> None:
    """How well one layer's curve, rescaled, explains another's: squared correlation of the first with the next three."""
    for task in TASKS:
        shared = [
            np.corrcoef(curve[:, 0], curve[:, layer])[0, 1] ** 2
            for curve in study.curves("tunnel", task, "layer_sizes")
            for layer in (1, 2, 3)
        ]
        print(f"  tunnel, {task}: squared correlation of layer 1 with layers 2, 3, 4: {np.mean(shared):.2f}")


def tree_sizes_move_apart(study: Study) -> None:
    for task in TASKS:
        pairs = zip(study.curves("budding", task, "hard_size"), study.curves("budding", task, "layer_sizes"), strict=True)
        both = [(hard, soft.sum(1)) for hard, soft in pairs]
        shared = [np.corrcoef(hard, soft)[0, 1] for hard, soft in both if hard.std() and soft.std()]
        print(
            f"  budding, {task}: correlation of hard and soft size {np.mean(shared):.2f}; "
            f"hard size 1–{max(h.max() for h, _ in both)}, "
            f"soft size at most {max(s.max() for _, s in both):.2f}"
        )


CLAIMS = {
    "sizes grow, then shrink; a highway never prunes": grows_then_shrinks,
    "earlier layers are used more": earlier_layers_are_used_more,
    "sizes settle after the rate is cut (mean change per epoch)": settles_with_the_rate,
    "two classes: layer curves are rescaled copies of one another": layers_move_alike,
    "ten classes: hard and soft tree sizes do not move together": tree_sizes_move_apart,
}


def main() -> None:
    study = Study("mnist")
    print_table(*table(STUDY.columns, study.summary["runs"], STUDY.paper), title="MNIST")
    for claim, show in CLAIMS.items():
        print(f"\n{claim}")
        show(study)


if __name__ == "__main__":
    main()
