"""How a notebook shows a fitted estimator: scikit-learn's diagram, and below it the size and structure that were found.

    TunnelClassifier().fit(X, y)         at the end of a cell: parameters, features, width, open units of every layer, a drawing

An estimator that is not fitted looks as scikit-learn's do; so does one inside a pipeline. Nothing is said of how good it is:
that needs rows it has not seen. base, cv and tables import it; reports draw the same networks.
"""

from typing import Any

import numpy as np

from meristem.nn.network import Network
from meristem.nn.structure import Nodes
from meristem.nn.trunk import trunk_of
from meristem.show.card import card, networks_of
from meristem.show.network_structure import nodes_of, stages_of


class Shown:
    """An estimator with a representation in notebooks."""

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + size_card(self) if is_fitted(self) else diagram

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
        facts |= facts_of(members[0])
    else:
        facts |= {"networks, averaged": str(len(members)), "the price that was found": f"{estimator.penalty_:.2g}"}
    return card(facts, networks_of(members), title=title)


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
    structure = stages_of(network)[0].structure
    if isinstance(structure, Nodes):
        levels = 1 + max(node.depth for node in nodes_of(structure))
        layers = {_many("layer", structure.n_leaves): str(structure.n_leaves)}
        return facts | layers | ({"levels of the tree": str(levels)} if levels > 1 else {})
    return facts | {"units, layer by layer": " · ".join(str(int((row > 0).sum())) for row in structure.values)}


def _of(some: int, every: int) -> str:
    return str(every) if some == every else f"{some} of {every}"


def _many(what: str, n: int) -> str:
    return what if n == 1 else f"{what}s"
