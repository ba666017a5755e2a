"""How a notebook shows a fitted estimator: scikit-learn's diagram, and below it the size and structure that were found.

    TunnelClassifier().fit(X, y)         at the end of a cell: parameters, features, width, open units of every layer, a drawing

An estimator that is not fitted looks as scikit-learn's do; so does one inside a pipeline. Nothing is said of how good it is:
that needs rows it has not seen. base and cv import it; tables show the same of the estimator that they hold.
"""

from typing import Any

import numpy as np

from meristem.nn.network import Network
from meristem.nn.structure import Nodes, structure
from meristem.nn.trunk import trunk_of
from meristem.show.card import card
from meristem.show.sketch import in_order, open_gates

MOST = 6  # networks of a bag that are drawn


class Shown:
    """An estimator with a representation in notebooks."""

    def _repr_html_inner(self) -> str:
        said: str = super()._repr_html_inner()  # type: ignore[misc]
        return said + size_card(self) if is_fitted(self) else said

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and is_fitted(self):
            bundle["text/html"] += size_card(self)
        return bundle


def is_fitted(estimator: Any) -> bool:
    return bool(estimator.__sklearn_is_fitted__())


def size_card(estimator: Any, *, title: str = "") -> str:
    """Size and structure of a fitted estimator, or of all the networks that it averages.

    >>> from sklearn.datasets import load_iris
    >>> from meristem import TunnelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunnelClassifier(max_epochs=5, max_width=8, depth=2, random_state=0).fit(X, y)
    >>> "<svg" in size_card(model), f"<b>{model.n_parameters_:,}</b> parameters" in size_card(model)
    (True, True)
    """
    members = getattr(estimator, "estimators_", [estimator])
    facts = {"parameters": f"{estimator.n_parameters_:,}"}
    if len(members) == 1:
        return card(facts | facts_of(members[0]), {"": members[0].network_}, title=title)
    facts |= {"networks, averaged": str(len(members)), "the price that was found": f"{estimator.penalty_:.2g}"}
    if len(members) > MOST:
        facts["networks are drawn"] = f"{MOST} of {len(members)}"
    drawn = {f"{place}: {one.n_parameters_:,} parameters": one.network_ for place, one in enumerate(members[:MOST], 1)}
    return card(facts, drawn, title=title)


def facts_of(estimator: Any) -> dict[str, str]:
    """What there is to be counted of one network: name → how many."""
    network: Network = estimator.network_
    n_features, chosen = estimator.n_features_in_, len(estimator.selected_features_)
    trunk, width = trunk_of(network.body), network.width
    n_open = width if trunk is None else int(np.asarray(trunk.is_open).sum())
    facts = {
        _many("feature", n_features): _of(chosen, n_features),
        "wide": _of(n_open, width),
    }
    shown = structure(network.body)
    if isinstance(shown, Nodes):
        layers = {_many("layer", shown.n_leaves): str(shown.n_leaves)}
        return facts | layers | ({"levels of the tree": str(1 + max(in_order(shown)))} if shown.n_leaves > 1 else {})
    gates = open_gates(network, shown)
    return facts | {"units, layer by layer": " · ".join(str(int((row > 0).sum())) for row in gates)}


def _of(some: int, every: int) -> str:
    return str(every) if some == every else f"{some} of {every}"


def _many(what: str, n: int) -> str:
    return what if n == 1 else f"{what}s"
