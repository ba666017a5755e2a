"""The opponent on MNIST: PyTorch's tunnel network and its training, as a good PyTorch user would write it.

The bytes lie on the device, are shuffled there once an epoch, and become floats batch by batch; a quarter of the inputs is
dropped; the measures after an epoch are taken in large batches. A step may be recorded as a CUDA graph.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

import torch_networks

PIECE = 10_000  # samples at once, where nothing is learned
WARM_UP = 3  # steps before a graph is recorded, as PyTorch's manual has it


class Trainer:
    """A network, its optimiser and its data: x [n, 784] and dev_x as bytes, y and dev_y as classes."""

    def __init__(
        self,
        network: torch_networks.Network,
        optimizer: torch.optim.Adam,
        train: tuple[Tensor, Tensor],
        dev: tuple[Tensor, Tensor],
        *,
        batch_size: int,
        dropout: float,
        penalty: float,
    ):
        self.network, self.optimizer, self.train, self.dev = network, optimizer, train, dev
        self.batch_size, self.dropout, self.penalty = batch_size, dropout, penalty

    def step(self, x: Tensor, y: Tensor) -> None:
        x = functional.dropout(_to_float(x), self.dropout, inplace=True)
        torch_networks.step(self.network, self.optimizer, self.penalty, x, y, "multiclass")

    def steps(self, most: int | None = None, step: Callable[[Tensor, Tensor], None] | None = None) -> None:
        """Those of an epoch, or the first ones of it; shuffling included."""
        x, y = self.train
        order = torch.randperm(len(y), device=y.device)[: None if most is None else most * self.batch_size]
        for batch in zip(x[order].split(self.batch_size), y[order].split(self.batch_size), strict=True):
            (step or self.step)(*batch)

    def epoch(self) -> list[float]:
        """All steps, then loss and error of the training and of the development set."""
        self.steps()
        return [number.item() for part in (self.train, self.dev) for number in self._measure(*part)]

    @torch.inference_mode()
    def _measure(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        outputs = torch.cat([self.network(_to_float(piece)) for piece in x.split(PIECE)])
        return functional.cross_entropy(outputs, y), (outputs.argmax(1) != y).float().mean()

    def recorded_step(self) -> Callable[[Tensor, Tensor], None]:
        """`step` as a CUDA graph, for full batches; the optimiser must be capturable. RuntimeError where it cannot be."""
        x, y = (part[: self.batch_size].clone() for part in self.train)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.step(x, y)
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad()  # the graph shall own the gradients
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads are JAX's
            self.step(x, y)

        def replay(new_x: Tensor, new_y: Tensor) -> None:
            x.copy_(new_x)
            y.copy_(new_y)
            graph.replay()

        return replay


def _to_float(x: Tensor) -> Tensor:
    return x.float().div_(255)
