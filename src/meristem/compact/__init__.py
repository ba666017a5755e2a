"""Compaction: a trained network → only what lives, exactly; what that saves; and, only where asked for, an approximation."""

from meristem.compact.approximate import Approximation as Approximation, approximate as approximate
from meristem.compact.report import Cost as Cost, Report as Report, report as report
from meristem.layers import layer
from meristem.layers.compact_network import CompactNetwork as CompactNetwork
from meristem.nn.compaction import compact as compact, n_parameters as n_parameters

layers = layer  # the kinds of layer, by the name that bodies of one's own know them by
