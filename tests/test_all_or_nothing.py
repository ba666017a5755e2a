"""A fit that fails leaves the estimator as it was, the number and the names of its features included."""

import pandas
import pytest

import meristem
from estimating import iris, tunnel

pytestmark = pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")


class GaveUpError(Exception):
    """Of a callback."""


def fails(info):
    raise GaveUpError


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::meristem.GrowthWarning")  # two epochs
@pytest.mark.parametrize(("change", "error"), [({"callbacks": fails}, GaveUpError), ({"learning_rate": 1e30}, ArithmeticError)])
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_a_fit_that_fails_leaves_what_was_there(change, error, how):
    X, y = iris()
    named = pandas.DataFrame(X[:, :2], columns=["length", "width"])
    model = tunnel(max_epochs=2)
    with pytest.raises(error):
        tunnel(max_epochs=2).set_params(**change).fit(named, y)
    model.fit(named, y)
    before, answer = dict(model.__dict__), model.predict_proba(named)
    model.set_params(**change)
    with pytest.raises(error):
        model.fit(X, y) if how == "fit" else model.partial_fit(named, y)
    model.set_params(**{name: before[name] for name in change})
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[name] is value for name, value in before.items())
    assert (model.predict_proba(named) == answer).all()


def test_the_same_of_a_search():
    X, y = iris()
    small = {"max_width": 4, "depth": 2, "max_epochs": 2, "penalties": [1e-3], "l2s": [1e-3], "input_dropouts": [0.0], "cv": 2}
    model = meristem.TunnelClassifierCV(**small, random_state=0, callbacks=fails)
    with pytest.raises(GaveUpError):
        model.fit(X, y)
    assert not [name for name in model.__dict__ if name.endswith("_")]
