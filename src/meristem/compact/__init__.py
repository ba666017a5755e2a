"""Compaction: a trained network → only what lives, exactly; what that saves; and, only where asked for, an approximation."""

from meristem.compact import layers as layers
from meristem.compact.approximate import Approximation as Approximation, approximate as approximate
from meristem.compact.lower import lower as lower
from meristem.compact.model import compact as compact, n_parameters as n_parameters
from meristem.compact.network import CompactNetwork as CompactNetwork
from meristem.compact.report import Cost as Cost, Report as Report, report as report
