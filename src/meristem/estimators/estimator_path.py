"""`meristem.path` of an estimator: every combination of some settings, in every fold, with its other parameters."""

from typing import Any

from sklearn.base import is_classifier

from meristem.cache import keep_programs
from meristem.estimators.fit_context import on_device, watchers
from meristem.estimators.fit_procedure import STEPS_SHARE
from meristem.estimators.network_estimator import NetworkEstimator
from meristem.estimators.parameters import check_parameter, check_parameters
from meristem.estimators.search import Search
from meristem.paths.halving import promising
from meristem.paths.result import Path


def path_of(
    estimator: NetworkEstimator,
    data: Any,
    lists: dict[str, Any],
    *,
    cv: Any,
    halving: bool,
    watch: Any,
    verbose: bool,
    **options: Any,
) -> Path:
    """Return `meristem.path` of an estimator, whose parameters replace lists that are None; options are fields of a search."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError("data must be a pair for an estimator: path(estimator, (X, y), …).")
    check_parameters(estimator)
    check_parameter("scoring", options["scoring"])
    table = estimator._encoded(*data)
    knobs = estimator._knobs(estimator._facts(table, {}), table)
    keep_programs()
    folds = table.folds(cv, classes=is_classifier(estimator))
    # A guess: four settings, of a quarter of the epochs each.
    epochs = len(folds) * options["seeds"] * estimator._epochs(len(table.y), STEPS_SHARE)
    watched = watchers("path", epochs, table.targets.objective, callbacks=watch, verbose=verbose)
    with on_device(estimator.device), watched as (watcher, _):
        search = Search(estimator, table, folds, watcher=watcher, **options)
        defaults = {"l2s": [knobs.l2], "dropouts": [knobs.dropout or 0.0], "rates": [knobs.learning_rate]}
        lists = {name: defaults[name] if values is None else values for name, values in lists.items()}
        return search.every_combination(stays=promising if halving else None, **search.lists(**lists))[0]
