"""Distillation: one network learns what a bag of networks answers, at a penalty at which it is as good.

    a(x)  the answer of the bag: probabilities of classes or labels, numbers, or rates (Objective.answer)
    J     = mean E(o(x), a(x)) + penalty · price          without l2 and dropout: answers have no noise to memorize

It learns from the rows and, every other epoch, from rows between them, so that it agrees with the bag there, too: each is a row
of which about half of the columns are those of a similar one. Such a network does not overfit; it is trained four times as long
as those of the bag, which mainly makes it smaller.

The first penalty is the median of the bag's networks divided by their number, since one stands for all. It falls by √10 until
the rows i cannot tell the network from the bag (outputs b) by their targets y; if they always can, the network nearest to the
bag is taken:

    mean E(o_i, a_i) − E(b_i, a_i)   ≤   half the standard error of the mean of E(o_i, y_i) − E(b_i, y_i)

Imported by cv.py.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from meristem.estimators.network_estimator import NetworkEstimator
from meristem.estimators.search import Search
from meristem.sparse import rows_at_once
from meristem.train.replay import replay, stage_ends
from meristem.train.run import Run, of_state
from meristem.train.training_data import Prepared

LONGER = 4  # than the networks of the bag are trained
STEP, TRAININGS = 10**-0.5, 3  # of the penalty; the most
CLOSE = 0.5  # standard errors
SETS, CANDIDATES, SWAPPED = 4, 32, 0.5  # of rows between rows; random rows of which the most similar is taken; of its columns


def distilled(search: Search, runs: Sequence[Run], bag: Sequence[NetworkEstimator], part: str = "distill") -> Run | None:
    """Return the run of a network that learned the answers of a bag, whose networks are of these runs; None if it diverged.

    Within a budget there is one training, whose penalty is that of the budget.
    """
    y, objective = search.shared_targets
    share, loss = search.table.weight / search.table.weight.sum(), jax.jit(jax.vmap(objective.loss))
    blocks, of_bag = learned_blocks(search, bag), mean_outputs(bag, search.table.z)
    answers = answers_of(search, of_bag)
    least, by_targets = np.asarray(loss(of_bag, answers)), np.asarray(loss(of_bag, y))
    nearest: tuple[float, Run | None] = (np.inf, None)
    for number in range(TRAININGS if search.budget is None else 1):
        if search.watcher.over():
            break
        run = trained(search, runs, blocks, STEP**number / len(bag), f"{part}-{number + 1}")
        if run.diverged:
            continue
        own = mean_outputs([search.fitted(run, 1.0)], search.table.z)
        behind = float(share @ (np.asarray(loss(own, answers)) - least))
        nearest = min(nearest, (behind, run), key=lambda pair: pair[0])
        if behind <= CLOSE * weighted_error(np.asarray(loss(own, y)) - by_targets, share):
            return run
    return nearest[1]


def trained(search: Search, runs: Sequence[Run], blocks: Sequence[Prepared], factor: float, part: str) -> Run:
    """Return the run of a network for all rows, at the median penalty of these runs times a factor."""
    search.watcher.expect(0)
    first, row = runs[0], np.arange(len(blocks[0].data.x))
    weight = jax.device_put((row < len(search.table.y)).astype(np.float32))
    knobs = first.knobs._replace(
        penalty=np.median([run.knobs.penalty for run in runs]).astype(np.float32) * np.float32(factor),
        l2=np.zeros_like(first.knobs.l2),
        dropout=None if first.knobs.dropout is None else np.zeros_like(first.knobs.dropout),  # None is another program
        weight=weight,
        dev_weight=weight,
        budget=search.budget,
    )
    run = of_state(search.new_state(), first.recipe, knobs, max_capacity=first.max_capacity)
    return replay(run, blocks, LONGER * stage_ends(runs), search.watcher.part(part))


def learned_blocks(search: Search, bag: Sequence[NetworkEstimator]) -> list[Prepared]:
    """Return the rows of the search with the answers of a bag, and sets of rows between them, in turns; padded as networks are.

    Of a large sparse table there are only its own rows.
    """
    z, (data, n_at_once) = search.table.z, search.prepared
    n_out, rng = search.begun_network.n_out, np.random.default_rng(search.table.seed)
    place: Callable[[np.ndarray], Any] = jax.device_put if n_at_once is None else np.asarray

    def block(own: Any, **more: Any) -> Prepared:
        answers, y = answers_of(search, mean_outputs(bag, own)), np.zeros((len(data.x), n_out), np.float32)
        y[: len(answers), : answers.shape[1]] = answers
        return Prepared(data._replace(y=place(y), **more), n_at_once)

    blocks = [block(z)]
    for _ in range(SETS if isinstance(z, np.ndarray) else 0):
        between = rows_between(z, rng)
        x = np.zeros(data.x.shape, np.float32)
        x[: len(z), : z.shape[1]] = between
        blocks += [block(between, x=place(x)), blocks[0]]
    return blocks


def rows_between(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows of which about half of the columns are those of the most similar of some other rows, chosen at random.

    >>> z = np.array([[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]])
    >>> rows_between(z, np.random.default_rng(0)).tolist()
    [[1.0, 0.0], [1.0, 0.0], [9.0, 1.0]]
    """
    n = len(z)
    nearest, distance = np.arange(n), np.full(n, np.inf)
    for _ in range(CANDIDATES):
        other = (np.arange(n) + rng.integers(1, max(n, 2), n)) % n
        own = ((z - z[other]) ** 2).sum(1)
        nearest, distance = np.where(own < distance, other, nearest), np.minimum(own, distance)
    return np.where(rng.random(z.shape) < SWAPPED, z[nearest], z)


def answers_of(search: Search, outputs: np.ndarray) -> np.ndarray:
    """Return the targets [n, n_out] that a network learns from these outputs."""
    return np.asarray(jax.jit(jax.vmap(search.shared_targets[1].answer))(outputs))


def mean_outputs(models: Sequence[NetworkEstimator], z: Any) -> np.ndarray:
    """Return the mean outputs [n, n_out] of models for these network inputs."""
    n, step = z.shape[0], rows_at_once(z.shape[1])
    parts = [np.mean([model._predictor_.outputs(z[at : at + step]) for model in models], 0) for at in range(0, n, step)]
    return np.concatenate(parts)


def weighted_error(differences: np.ndarray, share: np.ndarray) -> float:
    """Return the standard error of a weighted mean; the shares add up to 1."""
    return float(np.sqrt(share**2 @ (differences - share @ differences) ** 2))
