"""Model files from the outside: estimators that come back in a new process, `meristem show`, `meristem export`."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_multilabel_classification

import meristem
from commanding import Done, meristem_here
from estimating import SMALL
from filing import alike, python, write_document
from meristem import (
    BuddingClassifier,
    BuddingRegressor,
    HighwayRegressor,
    TunnelClassifier,
    TunnelRegressor,
)
from meristem.files import FileKind, document, file_kinds, load, register, save

pytestmark = pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")
IRIS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
CASES = {
    "names": (TunnelClassifier(class_weight={"setosa": 2.0, "versicolor": 1.0, "virginica": 1.0}), (IRIS[0], NAMES[IRIS[1]])),
    "two": (BuddingClassifier(), (IRIS[0][:100], IRIS[1][:100] == 1)),
    "labels": (TunnelClassifier(), make_multilabel_classification(60, 5, n_classes=3, random_state=0)),
    "number": (TunnelRegressor(), load_diabetes(return_X_y=True)),
    "numbers": (BuddingRegressor(max_leaves=2), (IRIS[0][:, :2], IRIS[0][:, 2:])),
    "quantiles": (TunnelRegressor(loss="quantile", quantiles=(0.1, 0.5, 0.9)), load_diabetes(return_X_y=True)),
    "counts": (TunnelRegressor(loss="poisson"), load_diabetes(return_X_y=True)),
    "highway": (HighwayRegressor(standardize=False), load_diabetes(return_X_y=True)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Of a case NAME it holds the model NAME, its rows NAME.npy, and what is made of them in other processes."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def everything(folder):
    """(model, X, y, file) of each case."""
    made = {}
    for name, (estimator, (X, y)) in CASES.items():
        body = {"max_leaves": 2} if hasattr(estimator, "max_leaves") else {"depth": 2}
        small = SMALL | body | {"max_epochs": 4}  # of shapes that other files' estimators have
        made[name] = type(estimator)(**estimator.get_params() | small).fit(X, y), X, y, folder / f"{name}.safetensors"
        save(made[name][-1], made[name][0])
        np.save(folder / f"{name}.npy", X)
    return made


@pytest.fixture(params=CASES)
def fitted(request, everything):
    return everything[request.param]


@pytest.fixture(scope="module")
def read_elsewhere(everything, folder) -> None:
    """A new process reads every model and writes what it predicts to NAME.predicted.npy."""
    code = (
        "import sys, numpy as np; from meristem import load\n"
        "for name in sys.argv[1:]: np.save(name + '.predicted', load(name + '.safetensors').predict(np.load(name + '.npy')))"
    )
    names = [str(folder / name) for name in everything]
    subprocess.run([sys.executable, "-c", code, *names], check=True, timeout=120)


@pytest.fixture(scope="module")
def commanded(everything, folder) -> dict[str, tuple[Done, Done]]:
    """What `meristem show` and `meristem export` say of each model; they write NAME.png and NAME.onnx."""
    commands = [
        [*command, folder / f"{name}.{ending}"]
        for name, (*_, path) in everything.items()
        for command, ending in ((["show", path, "--png"], "png"), (["export", path, "--onnx"], "onnx"))
    ]
    done = [meristem_here(*command) for command in commands]
    return dict(zip(everything, zip(done[::2], done[1::2], strict=True), strict=True))


def test_an_estimator_comes_back_to_the_bit(fitted):
    model, X, _, path = fitted
    same = load(path)
    assert type(same) is type(model) and same.get_params() == model.get_params()
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    for name in ("n_iter_", "best_epoch_", "soft_size_", "hard_size_", "n_live_units_", "n_features_in_", "n_parameters_"):
        assert getattr(same, name) == getattr(model, name), name
    for name, values in model.history_.items():
        np.testing.assert_array_equal(same.history_[name], values)
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(same.classes_, model.classes_)


def test_a_loaded_estimator_goes_on_training_as_the_first_one_would(fitted):
    """A copy of the estimator that was never in a file is what the loaded one is compared with."""
    model, X, y, path = fitted
    for train, epochs in (
        (lambda one: one.partial_fit(X, y), 1),
        (lambda one: one.set_params(warm_start=True, max_epochs=2).fit(X, y), 2),
    ):
        first, loaded = train(copy.deepcopy(model)), train(load(path))
        assert loaded.n_iter_ == first.n_iter_ == model.n_iter_ + epochs
        assert not np.array_equal(first.network_.head.weight, model.network_.head.weight), "it learned something"
        assert alike(loaded._state_, first._state_) and alike(loaded.network_, first.network_)
        np.testing.assert_array_equal(loaded.predict(X), first.predict(X))
        assert set(loaded.history_) == set(first.history_)
        for name, values in first.history_.items():
            assert len(values) == len(model.history_[name]) + epochs
            np.testing.assert_array_equal(loaded.history_[name], values)


@pytest.mark.usefixtures("read_elsewhere")
def test_a_new_process_reads_the_same(fitted):
    model, X, _, path = fitted
    np.testing.assert_array_equal(np.load(path.with_suffix(".predicted.npy")), model.predict(X))


def test_the_kind_of_a_file_is_read_where_it_is_registered(everything):
    """`meristem.load` imports the estimators for a file that holds one; `meristem.files` knows what has been registered."""
    program = """if True:
        import sys, meristem, meristem.files
        try:
            meristem.files.load(sys.argv[1])
        except ValueError as error:
            assert "it holds a 'estimator', which is none of network, run, model; give another file." in str(error), error
        else:
            sys.exit("it was loaded")
        assert "sklearn" not in sys.modules
        sys.modules["sklearn"] = None
        try:
            meristem.load(sys.argv[1])
        except ImportError as error:
            assert "holds a 'estimator', which needs scikit-learn: pip install 'meristem-nn[sklearn]'" in str(error), error
        else:
            sys.exit("it was loaded without scikit-learn")
        del sys.modules["sklearn"]
        assert type(meristem.load(sys.argv[1])) is type(meristem.files.load(sys.argv[1])) is meristem.TunnelClassifier
    """
    python(program, str(everything["names"][-1]))


def test_a_package_registers_a_kind_of_file_of_its_own(tmp_path, monkeypatch):
    class Means:
        def __init__(self, values):
            self.values = values

    def unpack(header, arrays):
        if header:
            raise ValueError("means have no header.")
        return Means(arrays["values"])

    monkeypatch.setattr(file_kinds, "KINDS", dict(file_kinds.KINDS))
    register(
        FileKind(
            "means",
            holds=lambda thing: isinstance(thing, Means),
            pack=lambda means: ({}, {"values": means.values}),
            unpack=unpack,
            check=unpack,
            not_kept=lambda means: ["name"],
        )
    )
    with pytest.warns(UserWarning, match="name is not kept in a file"):
        save(tmp_path / "means", Means(np.arange(3.0)))
    np.testing.assert_array_equal(load(tmp_path / "means").values, np.arange(3.0))
    with pytest.raises(ValueError, match="it holds a means, which needs no like="):
        load(tmp_path / "means", like=Means(np.zeros(3)))


def test_show_and_export_from_the_command_line(fitted, commanded):
    model, X, _, path = fitted
    shown, exported = commanded[path.stem]
    assert shown.returncode == 0, shown.stderr
    assert type(model).__name__ in shown.stdout and "parameters" in shown.stdout
    assert path.with_suffix(".png").stat().st_size > 5_000
    assert exported.returncode == 0, exported.stderr
    import onnxruntime

    session = onnxruntime.InferenceSession(path.with_suffix(".onnx"))
    result = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X.astype(np.float32)}), strict=True))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(result["probabilities"], model.predict_proba(X), atol=1e-5)
    else:
        scale = np.abs(model.predict(X)).max()
        np.testing.assert_allclose(result["predictions"].reshape(model.predict(X).shape), model.predict(X), atol=1e-5 * scale)


def test_what_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "nonsense.safetensors").write_bytes(b"nonsense")
    nothing, nonsense = tmp_path / "nothing", tmp_path / "nonsense.safetensors"
    *shown, exported = (meristem_here(*args) for args in (["show", nothing], ["show", nonsense], ["export", nonsense]))
    for done in shown:
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "--onnx" in exported.stderr
    with pytest.raises(ValueError, match="has been fitted"):
        save(tmp_path / "model", TunnelClassifier())
    with pytest.raises(ValueError, match="give a Network"):
        save(tmp_path / "model", 3)


def test_a_subclass_comes_back_as_what_it_can_be(everything, tmp_path):
    """One that adds nothing as the class of which it is one; another is refused, with a line that makes it plain."""
    model, X, *_ = everything["names"]

    class Mine(TunnelClassifier):
        """Another name."""

    class Loud(TunnelClassifier):
        def predict(self, X):
            return np.char.upper(super().predict(X))

    class Mixed(Loud, HighwayRegressor):
        pass

    own = copy.copy(model)
    own.__class__ = Mine
    save(tmp_path / "model", own)
    assert type(load(tmp_path / "model")) is TunnelClassifier
    before = (tmp_path / "model").read_bytes()
    for kind in (Loud, Mixed):
        own.__class__ = kind
        with pytest.raises(ValueError, match=rf"A {kind.__name__} cannot be saved: it adds .* meristem.TunnelClassifier\.$"):
            save(tmp_path / "model", own)
    assert (tmp_path / "model").read_bytes() == before
    own.__class__ = TunnelClassifier  # as the line says
    save(tmp_path / "model", own)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
    unfitted = Mine()
    unfitted.network_ = None
    with pytest.raises(ValueError, match="has not been fitted"):
        save(tmp_path / "model", unfitted)


def test_parameters_keep_their_value_or_are_refused(everything, tmp_path):
    """Lists, what is in lists, NumPy's numbers; what is of use only while it learns comes back None, and `save` says so."""
    model, *_ = everything["quantiles"]
    file = tmp_path / "model"
    for given in ({"quantiles": [0.1, 0.5]}, {"quantiles": (np.float64(0.25), 0.5)}, {"width": np.int64(3)}, {"l2": 0}):
        save(file, copy.copy(model).set_params(**given))
        same = load(file).get_params()
        for name, value in given.items():
            assert same[name] == value and isinstance(same[name], type(value) | int | float)
    save(file, copy.copy(model).set_params(quantiles=np.array([0.1, 0.5])))
    np.testing.assert_array_equal(load(file).quantiles, np.array([0.1, 0.5]))
    weighted = copy.copy(everything["names"][0])
    weighted.class_weight = {"setosa": np.float64(0.5), "versicolor": 2}
    save(file, weighted)
    assert load(file).class_weight == weighted.class_weight
    before = file.read_bytes()
    for given in ({"l2": {1, 2}}, {"class_weight": {"a": object()}}, {"width": "wide"}, {"penalty": np.nan}, {"depth": 0}):
        off = copy.copy(everything["names"][0])
        vars(off).update(given)
        with pytest.raises(ValueError, match="cannot be saved") as caught:
            save(file, off)
        assert next(iter(given)) in str(caught.value) and "\n" not in str(caught.value)
    assert file.read_bytes() == before
    for given in ({"callbacks": print}, {"random_state": np.random.RandomState(0)}):
        with pytest.warns(UserWarning, match=f"{next(iter(given))} is not kept"):
            save(file, copy.copy(model).set_params(**given))
        assert load(file).get_params()[next(iter(given))] is None
    save(file, copy.copy(model).set_params(device="gpu:7"))  # of another machine
    assert load(file).device == "gpu:7"


def test_a_forged_header_is_refused(fitted, tmp_path):
    """A document that is whole but says something else: another class, another parameter, another number of features."""
    *_, path = fitted
    whole = document.read(path)
    for change, says in [
        ({"estimator": "PipelineOfDoom"}, "not known"),
        ({"parameters": whole.header["parameters"] | {"widht": 3}}, "Did you mean 'width'"),
        ({"learned": whole.header["learned"] | {"n_features_in_": 77}}, "do not fit together"),
        ({"learned": whole.header["learned"] | {"n_iter_": "many"}}, "n_iter_ is 'many'"),
        ({"targets": {}}, "its targets"),
        ({"targets": {"kind": "numbers"}}, "cannot be loaded"),
        ({"parameters": []}, "cannot be loaded"),
        ({"learned": 3}, "cannot be loaded"),
    ]:
        forged = tmp_path / "forged.safetensors"
        write_document(forged, "estimator", whole.arrays, json.loads(json.dumps(whole.header)) | change)
        with pytest.raises(ValueError, match=says) as caught:
            load(forged)
        assert "forged.safetensors" in str(caught.value) and "\n" not in str(caught.value)


def test_the_golden_estimator_still_loads():
    """Written by version 0.1.0; what it predicted then stands beside it."""
    folder = Path(__file__).parent / "golden"
    expected = json.loads((folder / "estimator.json").read_text())
    path = folder / "estimator.safetensors"
    model = load(path)
    assert isinstance(model, meristem.TunnelClassifier)
    np.testing.assert_allclose(model.predict_proba(np.array(expected["X"])), expected["probabilities"], atol=1e-6)
    assert model.n_parameters_ == model.compact().n_parameters and "n_parameters_" not in document.read(path).header["learned"]
