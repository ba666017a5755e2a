"""Pictures: of an estimator (how it grew, what it became, what it learned), and of studies (`studies/`).

matplotlib is imported when one is drawn.
"""

from meristem.pictures.boundary import plot_decision_boundary as plot_decision_boundary
from meristem.pictures.frontier import plot_frontier as plot_frontier
from meristem.pictures.growth import plot_growth as plot_growth
from meristem.pictures.structure import plot_structure as plot_structure
