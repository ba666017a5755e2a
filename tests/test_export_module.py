"""A PyTorch module that was exported is one like any other: pickled, scripted, exported, trained further."""

import pickle

import numpy as np
import pytest

from exported_estimators import trained
from exporting import KINDS, fresh, random_layer, some_x
from meristem.compact import CompactNetwork
from meristem.export import OneOf, Values, to_torch, torch_of
from meristem.layers.layer import Affine, Cascade, Gated, Pick


def of_width_five(kind, activation, rng):
    """A layer that can follow any other."""
    return random_layer(kind, activation, rng, rows=(4, 2, 0, 1, 3) if kind is Pick else (1, 3))


def test_a_pickled_module_opens_without_meristem(torch, tmp_path):
    estimator, x = trained("iris")
    some = np.asarray(x, np.float32)
    (tmp_path / "module").write_bytes(pickle.dumps(torch_of(estimator)))
    np.savez(tmp_path / "is.npz", x=some, p=estimator.predict_proba(x))
    code = """
import numpy as np, pickle, torch
data, module = np.load(sys.argv[2]), pickle.load(open(sys.argv[1], "rb"))
assert abs(module(torch.tensor(data["x"])).detach().numpy() - data["p"]).max() < 1e-5
assert module.classes == ["setosa", "versicolor", "virginica"]
"""
    fresh(code, tmp_path / "module", tmp_path / "is.npz")


@pytest.mark.parametrize("kind", sorted(KINDS, key=str), ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning", "ignore:`torch.jit:FutureWarning")
def test_a_module_can_be_scripted_and_exported(kind, torch):
    rng = np.random.default_rng(0)
    network = CompactNetwork((of_width_five(kind, "gelu", rng), Affine(some_x(5, 1), None)))
    scaling = np.full(5, 0.1), np.full(5, 2.0)
    for ending in (OneOf(["no", "yes"]), Values(np.ones(1), np.ones(1), is_flat=True, link="log")):
        module = to_torch(network, scaling=scaling, ending=ending)
        x = torch.tensor(some_x(5))
        scripted = torch.jit.script(module)
        assert torch.allclose(scripted(x), module(x), atol=1e-6)
    exported = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("N")},))
    assert torch.allclose(exported.module()(x[:7]), module(x[:7]), atol=1e-6)


def test_a_module_can_be_trained_further(torch):
    layers = [of_width_five(kind, "tanh", np.random.default_rng(0)) for kind in KINDS]
    module = to_torch(CompactNetwork(tuple(layers)))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    module(torch.tensor(some_x(5))).square().mean().backward()
    optimizer.step()
    moved = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {name for name, _ in module.named_parameters()}
    ends = {name.split(".")[-1].split("_")[-1] for name, _ in module.named_buffers()}
    assert ends == {"gate", "rows", "shares", "0", "1", "2"}, "what is not trained: gates, rows and shares"


def test_a_recorded_formula_can_be_read(torch):
    rng = np.random.default_rng(0)
    layers = random_layer(Gated, "tanh", rng), random_layer(Cascade, "relu", rng)
    module = to_torch(CompactNetwork(layers))
    assert "self.linear(x)" in module.layer_0.code and "tanh" in module.layer_0.code and "index_copy" in module.layer_0.code
    assert [type(part).__name__ for part in module] == ["Gated", "Cascade"]
    names = {name for name, _ in module.layer_1.named_parameters()}
    assert names == {"linear.weight", "linear.bias", *(f"coupling_{k}.weight" for k in (1, 2, 3))}


def test_a_module_draws_no_random_numbers_and_shares_no_memory(torch):
    network = CompactNetwork((Affine(np.ones((1, 2), np.float32), np.zeros(1, np.float32)),))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    module = to_torch(network)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.no_grad():
        module.layer_0.linear.weight.zero_()
    assert network.layers[0].weight.tolist() == [[1, 1]]
