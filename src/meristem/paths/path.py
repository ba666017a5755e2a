"""`meristem.path`: error and size along a penalty, by cross-validation, from one call.

    path(network, Data(x, y), penalties=[…], learning_rate=1e-3, key=…, cv=5) → Path
    path(TunnelClassifier(), (X, y), penalties=[…]) → Path

Of a network, all members of a seed begin with it, or with what a function of a key makes. Folds are weights of rows, so the
data are on the device once. A fold's rows are held out: the schedule watches them, the best model is chosen by them, and their
loss is the score; `scoring` asks for another.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import as_key, check_size
from meristem.complexity import parameters
from meristem.nn.network import Network
from meristem.paths.folds import check_weights, fold_weights, measured_rows, shuffled_folds
from meristem.paths.members import Members, grid
from meristem.paths.result import Path
from meristem.paths.training import promising, trained
from meristem.train.knobs import L2, Knobs
from meristem.train.loop import MAX_EPOCHS
from meristem.train.recipe import Recipe
from meristem.train.run import MAX_CAPACITY, Run, begin
from meristem.train.samples import Data, prepare
from meristem.train.watching import Everyone, Watcher, watcher_of

USUAL = 4  # of the epochs that they may take, members take one in so many: a guess, for the time left


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
) -> Path:
    """Train every setting in every fold from every seed, and say what came out.

    start           a network, a function of a random key that makes one, or an estimator, whose own parameters then stand for
                    what is not given
    data            Data(x, y) or (x, y); with a development set of its own, `cv=None` scores by that. Of an estimator (X, y)
    penalties       numbers; of an estimator also "auto", a grid whose upper end is found from the data
    learning_rates, l2s, dropouts
                    numbers, all combinations of which are tried
    cv              how many folds, or a list of (training rows, held-out rows), or None
    seeds           how many beginnings
    halving         whether settings that are clearly behind leave early
    together        whether members share a program; None: on an accelerator
    scoring         by what settings are chosen, in place of the held-out loss: of a network a function of (network, x, y) with
                    the rows that are held out, of an estimator a name or function as in scikit-learn; more is better
    watch           as in `fit`, with the number of the member
    verbose         progress of the whole with the time left, on standard error

    >>> from meristem.data.spirals import two_spirals
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> found = path(
    ...     network, two_spirals("easy"), penalties=[1e-3, 1e-1], learning_rates=[1e-2], cv=2, key=jax.random.key(1),
    ...     recipe=Recipe(batch_size=32), max_epochs=3,
    ... )
    >>> found.table["loss"].shape, found.best().penalty in (1e-3, 1e-1)
    ((4,), True)
    """
    if hasattr(start, "get_params"):  # an estimator: it says itself how it is trained
        search = getattr(start, "_path", None)
        if search is None:
            raise ValueError(f"A {type(start).__name__} has no path; give one of meristem's plain estimators, or a Network.")
        if recipe is not None or key is not None:
            raise ValueError("recipe and key are a network's; an estimator has its own parameters and random_state.")
        grids = {"penalties": penalties, "l2s": l2s, "dropouts": dropouts, "learning_rates": learning_rates}
        options = {"cv": cv, "seeds": seeds, "halving": halving, "together": together, "scoring": scoring}
        return search(data, **grids, **options, watch=watch, verbose=verbose)
    if learning_rates is None or key is None or any(isinstance(given, str) for given in (penalties, l2s, dropouts)):
        raise ValueError(
            "Of a network penalties=[…], learning_rates=[…] and key=jax.random.key(0) must be given; numbers, no 'auto'."
        )
    check_size("seeds", seeds)
    if scoring is not None and not callable(scoring):
        raise ValueError(f"scoring={scoring!r} must be a function of (network, x, y) that returns a number: more is better.")
    recipe, key = recipe or Recipe(), as_key("key", key)
    keys = [jax.random.fold_in(key, seed) for seed in range(seeds)]
    networks = [start if isinstance(start, Network) else start(jax.random.fold_in(one, 0)) for one in keys]
    ready = prepare(data, networks[0], recipe.task)
    folds = None if cv is None else _splits(cv, len(ready.data.x), key)
    members = grid(
        penalties=penalties,
        l2s=(L2,) if l2s is None else l2s,
        dropouts=(0.0,) if dropouts is None else dropouts,
        rates=learning_rates,
        folds=0 if folds is None else len(folds),
        seeds=range(seeds),
    )
    check_weights(folds or [], None if ready.data.weight is None else np.asarray(ready.data.weight), "weight")
    weights = None if folds is None else fold_weights(folds, len(ready.data.x))
    begun = time.perf_counter()
    runs = [
        begin(networks[seed], recipe, knobs, jax.random.fold_in(keys[seed], 1 + max(fold, 0)), max_capacity=max_capacity)
        for knobs, fold, seed in zip(knobs_of(members, weights), members.fold, members.seed, strict=True)
    ]
    with _shown(recipe, len(members) * max_epochs / USUAL, verbose) as shown:
        watcher = Everyone([*shown, watcher_of("watch", watch)])
        watcher.begin(members.named)
        runs = trained(
            runs,
            ready,
            members.settings,
            max_epochs=max_epochs,
            stays=promising if halving else None,
            together=together,
            watcher=watcher,
        )
    best, seconds = [run.best for run in runs], time.perf_counter() - begun
    scores = None
    if scoring is not None:
        held = [ready.data[2:4] if fold < 0 else _at(ready.data, folds[fold][1]) for fold in members.fold]  # type: ignore[index]
        scores = [float(scoring(network, *rows)) for network, rows in zip(best, held, strict=True)]
    return result_of(members, runs, best, max_epochs, seconds, scores)


@contextmanager
def _shown(recipe: Recipe, epochs: float, verbose: bool) -> Iterator[list[Watcher]]:
    """Who shows a person where things stand, if anyone wants to see it; `epochs`: of all members, roughly."""
    if not verbose:
        yield []
        return
    from meristem.show.measures import error_measure
    from meristem.show.progress import Progress

    measure = error_measure(recipe.task.error_name, is_share=recipe.task.error_is_share)
    with Progress() as progress:
        progress.plan({("path", "all members"): epochs})
        with progress.group("path", "all members", epochs, measure) as shown:
            yield [shown]


def _at(data: Data, rows: np.ndarray) -> tuple[Any, Any]:
    return data.x[rows], data.y[rows]


def knobs_of(members: Members, weights: tuple[np.ndarray, np.ndarray] | None) -> list[Knobs]:
    """Those of each member; `weights` of training and held-out rows, [folds, rows]. Folds share what is on the device."""
    folds = () if weights is None else zip(*weights, measured_rows(*weights), strict=True)
    each = None if weights is None else [tuple(map(jnp.asarray, own)) for own in folds]
    return [
        Knobs(
            learning_rate=members.learning_rate[m],
            penalty=members.penalty[m],
            l2=members.l2[m],
            dropout=members.dropout[m] or None,
            weight=None if each is None else each[members.fold[m]][0],
            dev_weight=None if each is None else each[members.fold[m]][1],
            measured=None if each is None else each[members.fold[m]][2],
        )
        for m in range(len(members))
    ]


def result_of(
    members: Members,
    runs: Sequence[Run],
    networks: Sequence[Network],
    max_epochs: int,
    seconds: float,
    scores: Sequence[float] | None = None,
) -> Path:
    """What the runs came to, of at most so many epochs; `networks` are their best, as they are shipped."""
    rows = [_row(run, network, max_epochs) for run, network in zip(runs, networks, strict=True)]
    measured = {name: np.array([row[name] for row in rows]) for name in rows[0] if name != "layer_sizes"}
    layers = np.stack([row["layer_sizes"] for row in rows])
    scored = {} if scores is None else {"score": np.asarray(scores, float)}
    return Path(members.columns | measured | scored, tuple(networks), layers, seconds)


def _row(run: Run, network: Network, max_epochs: int) -> dict[str, Any]:
    """Of the best model of a run."""
    epoch = int(run.best_epoch) - 1
    if epoch < 0:  # no epoch was finite
        measured = {"loss": np.inf, "error": np.inf, "soft_size": 0.0, "hard_size": 0}
        layers = np.zeros_like(np.asarray(run.history["layer_sizes"])[0])
    else:
        named = {"loss": "dev_loss", "error": "dev_error", "soft_size": "soft_size", "hard_size": "hard_size"}
        measured = {name: run.history[own][epoch].item() for name, own in named.items()}
        layers = run.history["layer_sizes"][epoch]
    is_finished = bool(run.stopped) or int(run.epochs) >= max_epochs
    counts = {"n_parameters": parameters(network), "epochs": int(run.epochs), "finished": is_finished}
    return measured | counts | {"layer_sizes": layers}


def _splits(cv: Any, rows: int, key: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    if isinstance(cv, int | np.integer):
        return shuffled_folds(rows, int(cv), np.asarray(jax.random.key_data(key)).ravel()[-1].item())
    return [(np.asarray(learn), np.asarray(held)) for learn, held in cv]
