"""scikit-learn estimators whose networks find their own size."""

from meristem.estimators import (  # they register kinds of files
    estimator_file as estimator_file,
    image_classifier_file as image_classifier_file,
)
from meristem.estimators.classifiers import (
    BuddingClassifier as BuddingClassifier,
    HighwayClassifier as HighwayClassifier,
    TunnelClassifier as TunnelClassifier,
)
from meristem.estimators.cv import (
    BuddingClassifierCV as BuddingClassifierCV,
    BuddingRegressorCV as BuddingRegressorCV,
    TunnelClassifierCV as TunnelClassifierCV,
    TunnelRegressorCV as TunnelRegressorCV,
)
from meristem.estimators.fit_procedure import GrowthWarning as GrowthWarning
from meristem.estimators.image_classifier import TunnelImageClassifier as TunnelImageClassifier
from meristem.estimators.image_cv import TunnelImageClassifierCV as TunnelImageClassifierCV
from meristem.estimators.regressors import (
    BuddingRegressor as BuddingRegressor,
    HighwayRegressor as HighwayRegressor,
    TunnelRegressor as TunnelRegressor,
)
