"""The size and structure of a fitted estimator in a notebook, below scikit-learn's diagram.

It says nothing about accuracy, which needs rows that were not trained on. Reports draw the same networks.
"""

from typing import Any

from meristem.nn.compaction import trunk_gates
from meristem.nn.network import Network
from meristem.nn.structure import Nodes
from meristem.show.network_structure import nodes_of, stages_of
from meristem.show.structure_drawing import card, networks_of


def size_card(estimator: Any, *, title: str = "") -> str:
    """Return the size and structure of a fitted estimator, or of all networks that it averages, as HTML."""
    members = getattr(estimator, "estimators_", [estimator])
    facts = {"parameters": f"{estimator.n_parameters_:,}"}
    if len(members) > 1:
        facts |= {"networks, averaged": str(len(members)), "penalty, by cross-validation": f"{estimator.penalty_:.2g}"}
        return card(facts, networks_of(members), title=title)
    network: Network = members[0].network_
    n_features, n_selected = estimator.n_features_in_, len(members[0].selected_features_)
    n_open = next((int((gates > 0).sum()) for gates in trunk_gates(network.axes()).values()), network.width)
    counts = {f"feature{'s' * (n_features != 1)}": (n_selected, n_features), "wide": (n_open, network.width)}
    facts |= {name: str(every) if some == every else f"{some} of {every}" for name, (some, every) in counts.items()}
    structure = stages_of(network)[0].structure
    if isinstance(structure, Nodes):
        n, levels = structure.n_leaves, 1 + max(node.depth for node in nodes_of(structure))
        facts |= {f"layer{'s' * (n != 1)}": str(n)} | ({"levels of the tree": str(levels)} if levels > 1 else {})
    else:
        facts["units, layer by layer"] = " · ".join(str(int((row > 0).sum())) for row in structure.values)
    return card(facts, networks_of(members), title=title)
