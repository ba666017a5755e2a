"""Figures of an estimator (its growth, its structure, its decision boundary) and of studies (`studies/`), with matplotlib."""

from meristem.pictures.decision_boundary import plot_decision_boundary as plot_decision_boundary
from meristem.pictures.frontier_plot import plot_frontier as plot_frontier
from meristem.pictures.growth_plot import plot_growth as plot_growth
from meristem.pictures.structure_plot import plot_structure as plot_structure
