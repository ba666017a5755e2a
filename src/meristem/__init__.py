"""meristem: neural networks that find their own size.

The gates that decide how many units and layers exist are trained by gradient descent together with the weights.
"""

from meristem import nn as nn
from meristem.complexity import hard_size as hard_size, layer_sizes as layer_sizes, soft_size as soft_size
from meristem.gate import Confined as Confined, project as project
from meristem.nn import grow as grow, resize as resize
from meristem.train.loop import DivergedError as DivergedError, Fit as Fit, fit as fit
from meristem.train.optimizer import adam as adam, decay_mask as decay_mask, trainable as trainable
from meristem.train.population import fit_each as fit_each
from meristem.train.samples import Data as Data
from meristem.train.step import Recipe as Recipe

__version__ = "0.1.0"
