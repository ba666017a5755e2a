"""Tables that nothing was chosen by: scikit-learn's own and made ones, for benchmarks/tabular.py.

python benchmarks/made_tables.py made.npz
python benchmarks/tabular.py run --data made.npz --out results/tabular-made --splits 2
"""

import sys

import numpy as np
from sklearn import datasets as known

Tables = dict[str, tuple[np.ndarray, np.ndarray]]


def of_scikit_learn() -> Tables:
    """Those that come with it, and those that it makes."""
    hastie = known.make_hastie_10_2(3000, random_state=0)
    return {
        "bin.breast_cancer": known.load_breast_cancer(return_X_y=True),
        **{f"multi.{name}": getattr(known, f"load_{name}")(return_X_y=True) for name in ("wine", "iris", "digits")},
        "reg.diabetes": known.load_diabetes(return_X_y=True),
        "reg.friedman1": known.make_friedman1(1000, noise=1.0, random_state=0),
        "reg.friedman2": known.make_friedman2(1000, noise=50, random_state=0),
        "reg.friedman3": known.make_friedman3(1000, noise=0.1, random_state=0),
        "bin.moons": known.make_moons(600, noise=0.3, random_state=0),
        "bin.circles": known.make_circles(500, noise=0.15, factor=0.6, random_state=0),
        "bin.hastie": (hastie[0], (hastie[1] > 0).astype(int)),
        "multi.quantiles": known.make_gaussian_quantiles(n_samples=1500, n_features=6, n_classes=4, random_state=0),
        "reg.swiss": known.make_swiss_roll(1000, noise=0.5, random_state=0),
        "reg.sparse": known.make_sparse_uncorrelated(400, 20, random_state=0),
        "reg.wide_linear": known.make_regression(120, 300, n_informative=10, noise=5, random_state=0),
        "reg.low_rank": known.make_regression(300, 60, effective_rank=5, noise=1, random_state=0),
        "bin.noisy": known.make_classification(2000, 30, n_informative=5, n_redundant=5, flip_y=0.2, random_state=0),
        "multi.clusters": known.make_classification(
            3000, 20, n_informative=12, n_classes=6, n_clusters_per_class=3, class_sep=1.2, random_state=0
        ),
        "bin.imbalanced": known.make_classification(4000, 15, n_informative=6, weights=[0.95], random_state=1),
    }


def of_our_own(rng: np.random.Generator) -> Tables:
    """Products, parity, steps, heavy tails, few rows, chance, categories."""
    made: Tables = {}
    x = rng.normal(size=(1500, 8))
    made["reg.xor_product"] = x, x[:, 0] * x[:, 1] + 0.5 * x[:, 2] * x[:, 3] + 0.1 * rng.normal(size=1500)
    x = rng.integers(0, 2, size=(2000, 12))
    made["bin.parity4"] = x, x[:, :4].sum(1) % 2
    x = rng.uniform(-1, 1, size=(2000, 4))
    made["reg.step"] = x, np.sign(x[:, 0]) + np.floor(3 * x[:, 1]) + 0.1 * rng.normal(size=2000)
    x = rng.uniform(0, 1, size=(1500, 2))
    made["reg.sine"] = x, np.sin(12 * x[:, 0]) * np.cos(9 * x[:, 1]) + 0.1 * rng.normal(size=1500)
    x = rng.normal(size=(800, 6))
    made["reg.heavy"] = x, x[:, 0] * 2 + np.abs(x[:, 1]) + rng.standard_t(2, size=800)
    x = np.exp(2 * rng.normal(size=(1500, 7)))
    made["reg.lognormal"] = x, np.log(x[:, 0] * x[:, 1] + x[:, 2]) + 0.2 * rng.normal(size=1500)
    x = np.exp(2 * rng.normal(size=(1500, 7)))
    made["reg.skewed_target"] = x, np.exp(np.log(x[:, 0]) + 0.5 * np.log(x[:, 1]) + 0.3 * rng.normal(size=1500))
    x = rng.normal(size=(60, 4))
    made["bin.tiny"] = x, (x[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    x = rng.normal(size=(80, 5))
    made["reg.tiny"] = x, x[:, 0] - x[:, 1] + 0.5 * rng.normal(size=80)
    x = rng.normal(size=(1000, 10))
    made["bin.chance"] = x, rng.integers(0, 2, 1000)
    places = rng.integers(0, 8, size=(3000, 3))
    table = rng.normal(size=(8, 8))
    y = table[places[:, 0], places[:, 1]] + 0.2 * places[:, 2] + 0.2 * rng.normal(size=3000)
    made["reg.categories"] = np.concatenate([np.eye(8)[places[:, one]] for one in range(3)], 1), y
    return made


def main() -> None:
    """Write them as benchmarks/tabular.py reads them."""
    arrays = {}
    for name, (x, y) in (of_scikit_learn() | of_our_own(np.random.default_rng(7))).items():
        arrays |= {f"{name}.X": np.asarray(x, float), f"{name}.y": np.asarray(y)}
    np.savez(sys.argv[1], **arrays)


if __name__ == "__main__":
    main()
