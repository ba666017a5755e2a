"""Compaction: a trained network → only what lives, exactly; what that saves; and, only where asked for, an approximation."""

from meristem.compact.report import (
    Approximation as Approximation,
    Cost as Cost,
    Report as Report,
    approximate as approximate,
    report as report,
)
from meristem.layers import layer
from meristem.layers.compact_network import CompactNetwork as CompactNetwork
from meristem.nn.compaction import compact as compact, n_parameters as n_parameters

layers = layer  # the kinds of layer, by the name that bodies of one's own know them by
