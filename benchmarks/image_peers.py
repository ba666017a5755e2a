"""Peers on images, with the data and the recipe of the studies: Torch-Pruning and GroMo, in PyTorch.

    python benchmarks/image_peers.py torch-pruning --data DIR --budget 100000 [--set cifar10 --seeds 3 --epochs 50]
    python benchmarks/image_peers.py gromo --data DIR --budget 100000
    python benchmarks/image_peers.py by-hand --data DIR --widths 15,30,60            as benchmarks/image_sizes.py 15x30x60
    python benchmarks/image_peers.py step                                       a step, beside benchmarks/images.py

The recipe: one cycle of the rate, AdamW, label smoothing, flips and shifts, bfloat16 on a GPU, the mean of the networks of the
last fifth of the epochs, the epoch chosen on validation images. Torch-Pruning trains the network of the studies (channels 32,
64, 128, three inverted blocks a stage, normalized) for half of the epochs, prunes it to the budget at once by its group norms,
and trains it for the other half. GroMo grows the inner channels of a ResNet-20 from a quarter on, four times in the first half
of the epochs, as far as the budget allows; the optimizer begins anew each time. Parameters are those with batch normalization
folded. A line for each seed in OUT; a seed that is there is not trained again. Needs torch, and torch-pruning or gromo (with
torchmetrics).
"""

import argparse
import copy
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # of meristem only the data are used

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH, RATE, DECAY, B2, SMOOTHING = 256, 1e-2, 0.02, 0.99, 0.1
SETTLES, SHARE, GROWTHS, BEGIN = 0.8, 0.15, 4, 0.25
CHOSEN = {  # what a person had to choose, besides the recipe
    "torch-pruning": "network, importance, when to prune, how long to train after it, the budget",
    "gromo": "network with its largest widths and its depth, first widths, when to grow, by how much, the budget",
    "by-hand": "all channels and blocks",
}
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Inverted(nn.Module):
    """h + V σ(D ∗ σ(U h)), each σ normalized; V starts at a tenth, as gates do."""

    def __init__(self, width: int, units: int):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(width, units, 1, bias=False), nn.BatchNorm2d(units), nn.ReLU())
        depthwise = nn.Conv2d(units, units, 3, padding=1, groups=units, bias=False)
        self.depthwise = nn.Sequential(depthwise, nn.BatchNorm2d(units), nn.ReLU())
        self.outer = nn.Conv2d(units, width, 1, bias=False)
        with torch.no_grad():
            self.outer.weight *= 0.1

    def forward(self, h: Tensor) -> Tensor:
        return h + self.outer(self.depthwise(self.inner(h)))


def inverted_network(widths: list[int], channels: int, n_out: int, depth: int = 3) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)]
    for stage, width in enumerate(widths):
        if stage:
            layers += [nn.AvgPool2d(2), nn.Conv2d(widths[stage - 1], width, 1, bias=False)]
        layers += [Inverted(width, 3 * width) for _ in range(depth)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], n_out))


def shipped(model: nn.Module) -> int:
    """Return the parameters with batch normalization folded: a bias for each normalized channel."""
    normalized = sum(m.num_features for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    return sum(p.numel() for p in model.parameters()) - normalized


def shifted(x: Tensor, flips: bool) -> Tensor:
    """Return images [n, channels, height, width], each shifted by up to an eighth, mirrored at the edges; half are flipped."""
    n, _, *sides = x.shape
    places = []
    for side in sides:
        most = max(1, round(side / 8))
        place = torch.arange(side, device=x.device) + torch.randint(-most, most + 1, (n, 1), device=x.device)
        place = place.abs()
        places.append(torch.where(place >= side, 2 * (side - 1) - place, place))
    if flips:
        flipped = torch.rand(n, 1, device=x.device) < 0.5
        places[1] = torch.where(flipped, places[1].flip(1), places[1])
    x = x.permute(0, 2, 3, 1)
    rows = torch.arange(n, device=x.device)[:, None, None]
    return x[rows, places[0][:, :, None], places[1][:, None, :]].permute(0, 3, 1, 2)


def as_input(x: Tensor) -> Tensor:
    return ((x.float() / 255 - 0.5) / 0.25).contiguous(memory_format=torch.channels_last)


def loss_of(model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, is_short: bool = True) -> Tensor:
    with torch.autocast(DEVICE.type, torch.bfloat16, enabled=is_short and DEVICE.type == "cuda"):
        return functional.cross_entropy(model(x), y, label_smoothing=SMOOTHING)


def optimizer_of(model: nn.Module) -> torch.optim.AdamW:
    return torch.optim.AdamW(model.parameters(), RATE, (0.9, B2), weight_decay=DECAY, fused=DEVICE.type == "cuda")


@torch.no_grad()
def error(model: nn.Module, part: tuple[Tensor, Tensor]) -> float:
    model.eval()
    wrong = sum((model(as_input(x)).argmax(1) != y).sum().item() for x, y in zip(*(t.split(2000) for t in part), strict=True))
    return wrong / len(part[1])


def rate_at(share: float) -> float:
    return share / 0.25 if share < 0.25 else 0.5 * (1 + math.cos(math.pi * (share - 0.25) / 0.75))


def train(model: nn.Module, parts: Any, epochs: int, flips: bool, grow: Callable[[int], bool] = lambda epoch: False) -> Any:
    """Return the mean network of the last fifth with the least validation error, and that error."""
    x, y = parts[0]
    optimizer, average, seen, best = optimizer_of(model), copy.deepcopy(model), 0, (math.inf, model)
    for epoch in range(epochs):
        if grow(epoch):
            optimizer, average = optimizer_of(model), copy.deepcopy(model)
        for group in optimizer.param_groups:
            group["lr"] = RATE * rate_at((epoch + 0.5) / epochs)
        model.train()
        for rows in torch.randperm(len(x), device=x.device).split(BATCH):
            if len(rows) < 2:
                continue
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, as_input(shifted(x[rows], flips)), y[rows]).backward()
            optimizer.step()
        if epoch >= math.floor(SETTLES * epochs):
            seen += 1
            own, new = average.state_dict(), model.state_dict()
            for name, value in own.items():
                value.copy_(torch.lerp(value, new[name], max(1 / seen, SHARE)) if value.is_floating_point() else new[name])
            now = error(average, parts[1])
            if now < best[0]:
                best = now, copy.deepcopy(average)
    return best[1], best[0]


def torch_pruning(parts: Any, options: argparse.Namespace, n_out: int) -> Any:
    import torch_pruning as tp

    example = as_input(parts[0][0][:2])
    model = inverted_network(options.widths, example.shape[1], n_out).to(DEVICE, memory_format=torch.channels_last)
    half = max(1, options.epochs // 2)
    model, _ = train(model, parts, half, options.flips)

    def pruned(ratio: float) -> nn.Module:
        copied = copy.deepcopy(model)
        importance = tp.importance.GroupMagnitudeImportance(p=2)
        pruner = tp.pruner.BasePruner(
            copied, example, importance, global_pruning=True, pruning_ratio=ratio, ignored_layers=[copied[-1]]
        )
        pruner.step()
        return copied

    low, high = 0.0, 0.95
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if shipped(pruned(middle)) <= options.budget else (middle, high)
    small = pruned(high)
    before = error(small, parts[1])
    small, least = train(small, parts, options.epochs - half, options.flips)
    return small, least, {"ratio": high, "dev_error_before_training": before}


def gromo(parts: Any, options: argparse.Namespace, n_out: int) -> Any:
    from gromo.containers.resnet import init_full_resnet_structure
    from gromo.utils.training_utils import compute_statistics

    x, y = parts[0]
    shape = tuple(as_input(x[:1]).shape[1:])
    model = init_full_resnet_structure(
        shape, out_features=n_out, device=DEVICE, reduction_factor=BEGIN, small_inputs=True, skip_first_downsample=False,
        number_of_blocks_per_stage=3, inplanes=options.widths[0] // 2, nb_stages=3, use_preactivation=False,
    )  # fmt: skip
    moments = [max(1, round(options.epochs * (0.1 + 0.4 * k / (GROWTHS - 1)))) for k in range(GROWTHS)]
    grown: list[int] = []

    def grow(epoch: int) -> bool:
        if epoch not in moments:
            return False
        blocks = model._growable_layers
        each = [9 * (block.in_features + block.out_features) + 1 for block in blocks]  # parameters of a channel
        missing = [block.missing_neurons() for block in blocks]
        allowed = (options.budget - shipped(model)) / (GROWTHS - moments.index(epoch))
        share = min(1.0, allowed / max(sum(n * cost for n, cost in zip(missing, each, strict=True)), 1))
        for index in range(len(blocks)):
            more = min(math.ceil(share * missing[index]), (options.budget - shipped(model)) // each[index])
            grown.append(more)
            if more < 1:
                continue
            model.set_growing_layers(index=index)
            rows = torch.randperm(len(x), device=x.device)[: 10 * BATCH].split(BATCH)
            batches = [(as_input(shifted(x[own], options.flips)), y[own]) for own in rows]
            compute_statistics(model, batches, nn.CrossEntropyLoss(reduction="sum"), device=DEVICE)
            model.compute_optimal_updates(maximum_added_neurons=more)
            model.reset_computation()
            model.dummy_select_update()
            model.set_scaling_factor(1.0)
            model.apply_change()
        return True

    model, least = train(model, parts, options.epochs, options.flips, grow)
    return model, least, {"added": grown}


def by_hand(parts: Any, options: argparse.Namespace, n_out: int) -> Any:
    channels = parts[0][0].shape[1]
    model = inverted_network(options.widths, channels, n_out).to(DEVICE, memory_format=torch.channels_last)
    return *train(model, parts, options.epochs, options.flips), {}


def step(precision: str, batch: int = 512, steps: int = 20, repeats: int = 5) -> None:
    """Print the time of a step of the network of benchmarks/images.py: channels last, compiled."""
    model = inverted_network([32, 64, 128], 3, 10).to(DEVICE, memory_format=torch.channels_last)
    optimizer, x = optimizer_of(model), torch.randint(0, 256, (batch, 3, 32, 32), dtype=torch.uint8, device=DEVICE)
    compiled, x, y = torch.compile(model), as_input(x), torch.randint(0, 10, (batch,), device=DEVICE)
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss_of(compiled, x, y, precision == "bfloat16").backward()
            optimizer.step()
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / steps)
    own = {"batch": batch, "precision": precision}
    print(json.dumps(own | {"device": str(DEVICE), "torch": torch.__version__, "ms": [1000 * t for t in times[1:]]}))
    print(f"{1000 * statistics.median(times[1:]):.2f} ms a step in PyTorch {torch.__version__}")


def images_of(options: argparse.Namespace) -> tuple[Any, int]:
    """Return training, validation and test images [n, channels, height, width] with their classes, on the device."""
    from meristem.experiments import STUDIES
    from meristem.experiments.image_study import ImageOptions

    (task,) = STUDIES[options.set].plan(ImageOptions(data=options.data, images=options.images)).tasks
    data, parts = task.data, []
    for x, y in ((data.x, data.y), (data.dev_x, data.dev_y), (task.test.x, task.test.y)):
        x = np.asarray(x)[..., None] if np.ndim(x) == 3 else np.asarray(x)
        images = torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).to(DEVICE)
        parts.append((images, torch.from_numpy(np.asarray(y).astype(np.int64)).to(DEVICE)))
    return parts, task.n_out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["torch-pruning", "gromo", "by-hand", "step"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--set", choices=["cifar10", "fashion", "mnist-images"], default="cifar10")
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--widths", default="32,64,128", help="channels of the trunk of each stage")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", type=int, help="this seed alone: several processes share a GPU that none of them fills")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--images", type=int, help="of the set; all")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16", help="of `step`, on a GPU")
    parser.add_argument("--out", type=Path, default=Path("results/image-peers.jsonl"))
    options = parser.parse_args()
    if options.peer == "step":
        step(options.precision)
        return 0
    options.widths, options.flips = [int(width) for width in options.widths.split(",")], options.set != "mnist-images"
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.is_file() else []
    shared = {name: getattr(options, name) for name in ("peer", "set", "budget", "widths", "epochs", "images")}
    parts, n_out = images_of(options)
    run = {"torch-pruning": torch_pruning, "gromo": gromo, "by-hand": by_hand}[options.peer]
    for seed in range(options.seeds) if options.only is None else [options.only]:
        own = shared | {"seed": seed}
        if any(own.items() <= line.items() for line in done):
            continue
        torch.manual_seed(seed)
        begin = time.perf_counter()
        model, least, facts = run(parts, options, n_out)
        seconds = time.perf_counter() - begin
        line = own | {
            "test_error": error(model, parts[2]),
            "dev_error": least,
            "parameters": shipped(model),
            "seconds": seconds,
        }
        line |= {"device": str(DEVICE), "torch": torch.__version__, "chosen": CHOSEN[options.peer]} | facts
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"{options.peer}, seed {seed}: {100 * line['test_error']:.2f} %, {line['parameters']:,} parameters, {seconds:.0f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
