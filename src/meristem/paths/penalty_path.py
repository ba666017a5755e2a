"""`meristem.path`: loss and size along a penalty, by cross-validation, in one call.

    path(network, Data(x, y), penalties=[…], learning_rates=[1e-3], key=…, cv=5) → Path
    path(TunnelClassifier(), (X, y), penalties=[…]) → Path

Members of one seed begin with the same network. The held-out rows of a fold determine the learning-rate schedule, the best
model, and the score: their loss, or `scoring`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import as_key, check_size
from meristem.complexity import parameters
from meristem.nn.network import Network
from meristem.paths.folds import check_weights, fold_weights, measured_rows, shuffled_folds
from meristem.paths.halving import promising, trained
from meristem.paths.members import Member, by_number, grid, settings_of
from meristem.paths.result import Path
from meristem.show.measures import error_measure
from meristem.show.progress import Progress
from meristem.train.callbacks import Watcher, WatcherGroup, watcher_of
from meristem.train.hyperparameters import L2, Knobs, Recipe
from meristem.train.loop import MAX_EPOCHS
from meristem.train.objectives import Objective
from meristem.train.placement import on_workers
from meristem.train.run import MAX_CAPACITY, Run, begin
from meristem.train.training_data import prepare

USUAL_SHARE = 4  # members take about one in so many of the epochs they may take; for the time left


def path(
    start: Network | Callable[[Any], Network] | Any,
    data: Any,
    *,
    penalties: Sequence[float] | str = "auto",
    learning_rates: Sequence[float] | None = None,
    l2s: Sequence[float] | str | None = None,
    dropouts: Sequence[float] | str | None = None,
    cv: Any = 5,
    seeds: int = 1,
    key: Any = None,
    recipe: Recipe | None = None,
    max_epochs: int = MAX_EPOCHS,
    max_capacity: int = MAX_CAPACITY,
    halving: bool = False,
    together: bool | None = None,
    scoring: Any = None,
    watch: Any = None,
    verbose: bool = False,
    executor: Any = None,
) -> Path:
    """Train every setting in every fold from every seed, and return the results.

    start           a network, a function from a random key to one, or an estimator, whose parameters are then the defaults
    data            Data(x, y) or (x, y); with a development set of its own, `cv=None` scores by that. For an estimator (X, y)
    penalties       numbers; for an estimator also "auto", a grid whose upper end is computed from the data
    learning_rates, l2s, dropouts
                    numbers, of which all combinations are trained
    cv              the number of folds, a list of (training rows, held-out rows), or None
    seeds           the number of initializations
    halving         whether settings whose loss is clearly higher than the best stop early
    together        whether members share a program; None: on an accelerator
    scoring         replaces the held-out loss: for a network a function of (network, x, y), called with the held-out rows, for
                    an estimator a name or function as in scikit-learn; more is better
    watch           as in `fit`, with the number of the member
    verbose         whether to show progress with the time left on standard error
    executor        what trains members on other processes or machines, as in `fit`

    >>> from meristem.data.spirals import two_spirals
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> result = path(
    ...     network, two_spirals("easy"), penalties=[1e-3, 1e-1], learning_rates=[1e-2], cv=2, key=jax.random.key(1),
    ...     recipe=Recipe(batch_size=32), max_epochs=3,
    ... )
    >>> result.table["loss"].shape, result.best().penalty in (1e-3, 1e-1)
    ((4,), True)
    """
    if hasattr(start, "get_params"):  # an estimator knows how it is trained
        search: Any = getattr(start, "_path", None)
        if search is None:
            raise ValueError(f"start is a {type(start).__name__}; give a Network, or a meristem estimator without CV.")
        if recipe is not None or key is not None:
            raise ValueError("recipe and key are for a network; set the parameters and random_state of the estimator instead.")
        lists = {"penalties": penalties, "l2s": l2s, "dropouts": dropouts, "rates": learning_rates}
        options = {"seeds": seeds, "together": together, "scoring": scoring}
        with on_workers(executor):
            return search(data, lists, cv=cv, halving=halving, watch=watch, verbose=verbose, **options)
    if learning_rates is None or key is None or any(isinstance(values, str) for values in (penalties, l2s, dropouts)):
        raise ValueError("For a network give penalties=[…] and learning_rates=[…] as numbers, and key=jax.random.key(0).")
    check_size("seeds", seeds)
    if scoring is not None and not callable(scoring):
        raise ValueError(f"scoring={scoring!r} must be a function of (network, x, y) that returns a number: more is better.")
    recipe, key = recipe or Recipe(), as_key("key", key)
    keys = [jax.random.fold_in(key, seed) for seed in range(seeds)]
    networks = [start if isinstance(start, Network) else start(jax.random.fold_in(seed_key, 0)) for seed_key in keys]
    ready = prepare(data, networks[0], recipe.task)
    if isinstance(cv, int | np.integer):
        cv = shuffled_folds(len(ready.data.x), int(cv), np.asarray(jax.random.key_data(key)).ravel()[-1].item())
    folds = None if cv is None else [(np.asarray(train), np.asarray(held_out)) for train, held_out in cv]
    l2s, dropouts, n_folds = (L2,) if l2s is None else l2s, (0.0,) if dropouts is None else dropouts, len(folds or ())
    members = grid(penalties=penalties, l2s=l2s, dropouts=dropouts, rates=learning_rates, folds=n_folds, seeds=range(seeds))
    check_weights(folds or [], None if ready.data.weight is None else np.asarray(ready.data.weight), "weight")
    weights = None if folds is None else fold_weights(folds, len(ready.data.x))
    begun = time.perf_counter()
    runs = [
        begin(networks[seed], recipe, knobs, jax.random.fold_in(keys[seed], 1 + max(fold, 0)), max_capacity=max_capacity)
        for (*_, fold, seed), knobs in zip(members, knobs_of(members, weights), strict=True)
    ]
    options = {"max_epochs": max_epochs, "stays": promising if halving else None, "together": together}
    epochs, own_watcher = len(members) * max_epochs / USUAL_SHARE, watcher_of("watch", watch)
    with watching("path", "all members", epochs, recipe.task, [own_watcher], verbose=verbose) as (watcher, _):
        watcher.begin(by_number(members))
        with on_workers(executor):
            runs = trained(runs, ready, settings_of(members), watcher=watcher, **options)
    seconds, scores = time.perf_counter() - begun, None
    if scoring is not None:
        own = ready.data
        held_out = [(own.dev_x, own.dev_y)] if folds is None else [(own.x[rows], own.y[rows]) for _, rows in folds]
        scores = [float(scoring(run.best, *held_out[member.fold])) for run, member in zip(runs, members, strict=True)]
    results = [MemberResult.of(run, run.best, max_epochs) for run in runs]
    return result_of(members, results, seconds, score=scores)


@contextmanager
def watching(
    name: str, part: str, epochs: float, objective: Objective, watchers: list[Watcher], *, verbose: Any, **options: Any
) -> Iterator[tuple[WatcherGroup, Callable[[str], None]]]:
    """Yield the watchers as one and a function that prints a line, with progress if `verbose`; `epochs` is a guess for all.

    Options are those of `Progress.group`.
    """
    if not verbose:
        yield WatcherGroup(watchers), lambda line: None
        return
    measure = error_measure(objective.error_name, is_share=objective.error_is_share)
    with Progress() as progress:
        progress.ends_at = WatcherGroup(watchers).ends_at()
        progress.plan({(name, part): epochs})
        with progress.group(name, part, epochs, measure, **options) as display:
            yield WatcherGroup([display, *watchers]), progress.say


def knobs_of(members: Sequence[Member], weights: tuple[np.ndarray, np.ndarray] | None) -> list[Knobs]:
    """Return the knobs of each member; `weights` of training and held-out rows, [folds, rows], are on the device once."""
    folds = [] if weights is None else list(zip(*weights, measured_rows(*weights), strict=True))
    each = [dict(zip(("weight", "dev_weight", "measured"), map(jnp.asarray, fold), strict=True)) for fold in folds] or [{}]
    return [Knobs(own.learning_rate, own.penalty, own.l2, own.dropout or None, **each[own.fold]) for own in members]


class MemberResult(NamedTuple):
    """What a run ended with: its network, its entries in the table of a path, and the sizes of its layers."""

    network: Network
    row: dict[str, Any]
    layer_sizes: np.ndarray

    @classmethod
    def of(cls, run: Run, network: Network, max_epochs: int) -> Self:
        """Return the result of a run of one network, which is its best."""
        best, layer_sizes = int(run.best_epoch) - 1, run.recorded("layer_sizes")
        row: dict[str, Any] = {"loss": np.inf, "error": np.inf, "soft_size": 0.0, "hard_size": 0}
        if run.best_epoch:  # some epoch was finite
            names = {"loss": "dev_loss", "error": "dev_error"}
            row = {name: run.recorded(names.get(name, name))[best].item() for name in row}
        is_finished = bool(run.stopped) or int(run.epochs) >= max_epochs
        row |= {"n_parameters": parameters(network), "epochs": int(run.epochs), "finished": is_finished}
        return cls(network, row, layer_sizes[best] if run.best_epoch else np.zeros_like(layer_sizes[0]))


def result_of(members: Sequence[Member], results: Sequence[MemberResult], seconds: float, **more: Any) -> Path:
    """Return the path of the members with these results; `more` are further columns of the table that are not None."""
    rows = [member._asdict() | result.row for member, result in zip(members, results, strict=True)]
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    table |= {name: np.asarray(column, float) for name, column in more.items() if column is not None}
    networks, sizes = tuple(result.network for result in results), [result.layer_sizes for result in results]
    return Path(table, networks, np.stack(sizes), seconds)
