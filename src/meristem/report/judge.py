"""How good what was said is, row by row, whatever y means: off [rows] is what each row costs, base [rows] what it may.

    score = 1 − Σ off / Σ base,  with 95 % limits;  a loss of score is Σ (off' − off) / Σ base

    class       off is 1 where the class is wrong, base is 1          accuracy
    labels      off is the share of labels that are wrong, base is 1  share of right labels
    number      squared error over that of the mean                   R², the mean over several numbers a row
    quantiles   quantile loss over that of the best constant          where the median is not among them

Of classes the interval is Wilson's, else the bootstrap's. Imports the targets and scoring; evidence imports it.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from meristem.report.scoring import share_interval
from meristem.targets import Labels, Quantiles

CLASS, LABELS, NUMBER, QUANTILES = "class", "labels", "number", "quantiles"
MEASURES = {CLASS: "accuracy", LABELS: "share of right labels", NUMBER: "R²", QUANTILES: "quantile skill"}
BLOCK = 16_384  # rows that are predicted at a time
DRAWS, LEAST_DRAWS, MOST_DRAWN = 1000, 100, 10_000_000  # of the bootstrap; rows that are drawn in all
MEDIAN = 0.5


@dataclass(frozen=True, eq=False)
class Judge:
    """What y is, and what it is compared by; see the module's header."""

    kind: str
    y: np.ndarray = field(
        repr=False
    )  # places of classes [n], −1 where it is none of them; 0 and 1 [n, labels]; numbers [n, columns]
    labels: tuple[str, ...] = ()  # of classes
    levels: tuple[float, ...] = ()  # of quantiles
    variance: np.ndarray | None = field(default=None, repr=False)  # [columns] that squares are counted in; None: that of y

    @classmethod
    def of(cls, model: Any, y: np.ndarray) -> Self:
        """Of a fitted estimator and y as its `fit` takes it.

        >>> import meristem
        >>> x, y = np.arange(20.0)[:, None], np.array(["a", "b"] * 10)
        >>> model = meristem.TunnelClassifier(width=2, depth=1, max_epochs=2, random_state=0).fit(x, y)
        >>> Judge.of(model, np.array(["b", "c"])).y.tolist()
        [1, -1]
        """
        targets = model._targets_
        if isinstance(targets, Labels):
            return cls(LABELS, np.asarray(y, float), tuple(f"label {place}" for place in range(targets.count)))
        if hasattr(model, "classes_"):
            places = {label: place for place, label in enumerate(model.classes_.tolist())}
            codes = np.array([places.get(label, -1) for label in np.asarray(y).tolist()], int)
            return cls(CLASS, codes, tuple(str(label) for label in model.classes_.tolist()))
        levels = targets.levels if isinstance(targets, Quantiles) else ()
        kind = QUANTILES if levels and MEDIAN not in levels else NUMBER
        return cls(kind, np.asarray(y, float).reshape(len(y), -1), levels=levels)

    @property
    def measure(self) -> str:
        return MEASURES[self.kind]

    @property
    def n_values(self) -> int:
        """What a linear model has to say of a row."""
        if self.kind == CLASS:
            return len(self.labels) if len(self.labels) > 2 else 1
        return self.y.shape[1]

    def part(self, rows: np.ndarray) -> "Judge":
        """The same of some rows: what one of them costs does not change."""
        if self.kind in (NUMBER, QUANTILES):
            return replace(self, y=self.y[rows], variance=self.y.var(0) if self.variance is None else self.variance)
        return replace(self, y=self.y[rows])

    @cached_property
    def base(self) -> np.ndarray:
        if self.kind in (CLASS, LABELS):
            return np.ones(len(self.y))
        return self.off(self.constant)

    @property
    def constant(self) -> np.ndarray:
        """What is best said of every one of these rows alike, as `off` takes it: the commonest class, the mean.

        >>> Judge("class", np.array([2, 0, 2]), ("a", "b", "c")).constant.tolist()
        [2, 2, 2]
        """
        if self.kind == CLASS:
            return np.full(len(self.y), np.bincount(self.y[self.y >= 0], minlength=1).argmax())
        if self.kind == QUANTILES:
            best = np.quantile(self.y, self.levels, axis=0).T.reshape(-1)
        else:
            best = self.y.mean(0) if self.kind == NUMBER else (self.y.mean(0) > 0.5).astype(float)
        return np.repeat(best[None], len(self.y), 0)

    def off(self, said: np.ndarray) -> np.ndarray:
        """Of places of classes, labels or numbers, or of all quantiles [n, columns · levels]."""
        if self.kind == CLASS:
            return (self.y != said).astype(float)
        if self.kind == LABELS:
            return np.asarray((self.y != said).mean(1))
        return self._pinball(said) if self.kind == QUANTILES else self._squared(said.reshape(len(self.y), -1))

    def _squared(self, said: np.ndarray) -> np.ndarray:
        spread = self.y.var(0) if self.variance is None else self.variance
        return np.asarray(((self.y - said) ** 2 / np.where(spread > 0, spread, 1)).mean(1))

    def _pinball(self, said: np.ndarray) -> np.ndarray:
        off = np.repeat(self.y, len(self.levels), 1) - said.reshape(len(self.y), -1)
        level = np.tile(self.levels, self.y.shape[1])
        return np.asarray(np.maximum(level * off, (level - 1) * off).mean(1))

    def score(self, off: np.ndarray, seed: int = 0) -> dict[str, Any]:
        """The score with its limits; of numbers that are all the same there is none."""
        total = float(self.base.sum())
        if total <= 0:
            return {"measure": self.measure, "value": np.nan, "low": np.nan, "high": np.nan}
        if self.kind == CLASS:
            low, high = share_interval(round(len(off) - off.sum()), len(off))
        else:
            sums = _drawn(np.stack([off, self.base]), seed)
            low, high = np.quantile(1 - sums[0] / np.maximum(sums[1], np.finfo(float).tiny), [0.025, 0.975])
        return {"measure": self.measure, "value": float(1 - off.sum() / total), "low": float(low), "high": float(high)}

    def gain(self, off: np.ndarray, other: np.ndarray, seed: int = 0) -> tuple[float, float, float]:
        """How much better the score of `off` is than that of `other`, on the same rows, with 95 % limits."""
        sums = _drawn(np.stack([other - off, self.base]), seed)
        low, high = np.quantile(sums[0] / np.maximum(sums[1], np.finfo(float).tiny), [0.025, 0.975])
        return float((other - off).sum() / max(self.base.sum(), np.finfo(float).tiny)), float(low), float(high)


def _drawn(values: np.ndarray, seed: int) -> np.ndarray:
    """Sums [kinds, draws] of values [kinds, n] over rows that are drawn with replacement."""
    rng, n = np.random.default_rng(seed), values.shape[1]
    draws = max(LEAST_DRAWS, min(DRAWS, MOST_DRAWN // n))
    return np.stack([values[:, rng.integers(n, size=n)].sum(1) for _ in range(draws)], 1)


def outputs_of(model: Any, X: Any) -> np.ndarray:
    """The outputs of a model's network for X, dense or sparse, a block of rows at a time."""
    blocks = range(0, X.shape[0], BLOCK)
    return np.concatenate([model._predictor_.outputs(model._inputs_(X[at : at + BLOCK])) for at in blocks])


def said_of(model: Any, raw: np.ndarray, judge: Judge) -> np.ndarray:
    """What the outputs say, as `Judge.off` takes it: of several quantiles the median, if it is among them."""
    said = np.asarray(model._targets_.decode(raw))
    if judge.kind == CLASS:
        return np.searchsorted(model.classes_, said)
    if judge.kind == NUMBER:
        said = said.reshape(len(said), -1)
        return said[:, judge.levels.index(MEDIAN) :: len(judge.levels)] if judge.levels else said
    return said
