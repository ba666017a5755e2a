"""The opponent: the same networks in PyTorch eager, written as a good PyTorch user would write them.

Modules with parameters of their own, one parameter group per depth (rate · 0.75^depth), `Adam(fused=True)`, L2 as the
groups' weight decay, the penalty in the loss, gates clamped after each step. Wherever there is a choice the faster way is
taken: `lerp` for the mixtures, nothing computed twice, all gates clamped at once, no test for growth. A model tells its
tensors by meristem's names, so that weights can be copied over and gradients compared.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

DEPTH_DECAY, L2 = 0.75, 1e-5
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "binary": lambda outputs, y: functional.binary_cross_entropy_with_logits(outputs[:, 0], y),
    "multiclass": functional.cross_entropy,
}


class TunnelLayer(nn.Module):
    """Equation 1: g · σ(Wx + b) + (1 − g) · x."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.lerp(x, torch.relu(self.linear(x)), self.gate)


class Network(nn.Module):
    """embed → body → head. `layers` and `gates` are those of the body, in meristem's order, each with its depth."""

    def __init__(
        self,
        body: nn.Module,
        n_in: int,
        n_out: int,
        width: int,
        layers: list[tuple[nn.Linear, int]],
        gates: list[tuple[nn.Parameter, int]],
        price: Callable[[list[Tensor]], Tensor],
    ):
        super().__init__()
        self.embed, self.body, self.head = nn.Linear(n_in, width, bias=False), body, nn.Linear(width, n_out)
        self.layers, self.gates, self.price_of = layers, [gate for gate, _ in gates], price
        self.by_depth = {
            **dict.fromkeys([self.embed.weight, self.head.weight, self.head.bias], 0),
            **{p: depth for layer, depth in layers for p in layer.parameters()},
            **dict(gates),
        }

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.embed(x)))

    def price(self) -> Tensor:
        return self.price_of(self.gates)

    def named(self) -> dict[str, list[Tensor]]:
        """The trained tensors by meristem's names; of stacked arrays the rows."""
        return {
            "embed": [self.embed.weight],
            "head": [self.head.weight],
            "head_bias": [self.head.bias],
            "weight": [layer.weight for layer, _ in self.layers],
            "bias": [layer.bias for layer, _ in self.layers],
            "gates": self.gates,
        }


def tunnel(n_in: int, n_out: int, *, width: int, depth: int) -> Network:
    """A tunnel network; its price is Σ g."""
    layers = [TunnelLayer(width) for _ in range(depth)]
    linears, gates = ([(getattr(layer, name), d) for d, layer in enumerate(layers)] for name in ("linear", "gate"))
    return Network(nn.Sequential(*layers), n_in, n_out, width, linears, gates, lambda g: torch.cat(g).sum())


class Node(nn.Module):
    """Equation 4: (1 − γ) · right(left(x)) + γ · σ(Wx + b); the left child shares its parent's layer. A leaf has a bud."""

    def __init__(self, width: int, depth: int, height: int, layer: nn.Linear | None = None):
        super().__init__()
        self.depth, self.layer_is_new = depth, layer is None
        self.layer = layer or nn.Linear(width, width)
        self.leafness = nn.Parameter(torch.tensor(0.5 if height else 1.0))
        self.left = Node(width, depth + 1, height - 1, self.layer) if height else None
        self.right = Node(width, depth + 1, height - 1) if height else None
        self.bud = None if height else nn.Linear(width, width).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(torch.relu(self.layer(x)))

    def after(self, p: Tensor) -> Tensor:
        """The node's output, given its own layer's output; the left child's layer is the same and sees the same input."""
        if self.bud is not None:
            return p + (1 - self.leafness) * (torch.relu(self.bud(p)) - p).detach()
        return torch.lerp(self.right(self.left.after(p)), p, self.leafness)

    def in_order(self) -> list["Node"]:
        """The nodes of the subtree from left to right: leaf, inner, leaf, …"""
        return [self] if self.bud is not None else [*self.left.in_order(), self, *self.right.in_order()]


def budding(n_in: int, n_out: int, *, width: int, height: int) -> Network:
    """A full tree with 2^height leaves; its price is Σ 1 − γ."""
    root = Node(width, 0, height)
    nodes = root.in_order()
    # A layer has the depth at which it was created: that of the highest node that uses it.
    created = {node.layer: node.depth for node in nodes if node.layer_is_new}
    layers = [(node.layer, created[node.layer]) for node in nodes if node.bud is not None]
    gates = [(node.leafness, node.depth) for node in nodes]
    return Network(root, n_in, n_out, width, layers, gates, lambda g: len(g) - torch.stack(g).sum())


def buds(network: Network) -> list[nn.Linear]:
    return [node.bud for node in network.body.in_order() if node.bud is not None]


def adam(network: Network, rate: float, **options: bool) -> torch.optim.Adam:
    """One group per depth and kind; weights decay, biases and gates do not."""
    groups: dict[tuple[int, bool], list[Tensor]] = {}
    for parameter, depth in network.by_depth.items():
        groups.setdefault((depth, parameter.ndim == 2), []).append(parameter)
    return torch.optim.Adam(
        [{"params": p, "lr": rate * DEPTH_DECAY**depth, "weight_decay": L2 * decays} for (depth, decays), p in groups.items()],
        fused=True,
        **options,
    )


def objective(network: Network, penalty: float, x: Tensor, y: Tensor, kind: str) -> Tensor:
    """J without L2, which is in the optimiser."""
    return LOSSES[kind](network(x), y) + penalty * network.price()


def step(network: Network, optimizer: torch.optim.Adam, penalty: float, x: Tensor, y: Tensor, kind: str) -> None:
    """One step on a batch."""
    optimizer.zero_grad()
    objective(network, penalty, x, y, kind).backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_clamp_min_(network.gates, 0)
        torch._foreach_clamp_max_(network.gates, 1)
