"""The frontier on MNIST: test error and parameters of networks that find their size, at several prices, as one population.

    python benchmarks/sizes_mnist.py --data DIR --out DIR --body tunnel --depth 4 --penalties 1e-5,3e-5,1e-4 --seeds 5

Everything but the size is as in the paper's study: batches of 32, a quarter of the inputs dropped, Adam at 0.0003, schedule and
choice of the model by validation error. With --budget the price is found by the run. With --scratch each structure that was
found is trained again with fresh weights, by the same schedule. Writes frontier.json, a record for each network.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from meristem import adam
from meristem.compact import compact
from meristem.data.mnist import read_images
from meristem.experiments.mnist import INPUT_DROPOUT, LEARNING_RATE, task_of
from meristem.gate import is_confined
from meristem.nn import Network
from meristem.train.hyperparameters import Recipe
from meristem.train.loop import fit, seed_keys
from meristem.train.metrics import evaluate


def from_scratch(found: Network, seeds: list[int], body: str, options: dict[str, Any]) -> Network:
    """Fresh weights in the structures that were found: what is closed there is closed here, what is open as open as there."""
    fresh = jax.vmap(lambda key: Network.create(body, 784, 10, key=key, **options))(seed_keys(seeds, 2))

    def one(new: Any, old: Any) -> Any:
        return old if is_confined(old) else new

    return jax.tree.map(one, fresh, found, is_leaf=is_confined)


def stay_closed() -> optax.GradientTransformation:
    """A link of a chain: no update of a gate that is closed."""

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        def one(change: Any, gate: Any) -> Any:
            return change.at(jnp.where(gate.is_open, change.value, 0)) if is_confined(change) else change

        return jax.tree.map(one, updates, params, is_leaf=lambda node: node is None or is_confined(node)), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--body", default="tunnel")
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--width", default="auto")
    parser.add_argument("--max-width", type=int, default=100)
    parser.add_argument("--inputs", action="store_true", help="inputs may close")
    parser.add_argument("--price", default="parameters")
    parser.add_argument("--penalties", default="1e-5,3e-5,1e-4")
    parser.add_argument("--budget", type=float, default=None)
    parser.add_argument("--scratch", action="store_true")
    parser.add_argument("--follow", action="store_true", help="steps of what is open alone, once the rate has shrunk")
    parser.add_argument("--dropouts", default=str(INPUT_DROPOUT))
    parser.add_argument("--rates", default=str(LEARNING_RATE))
    parser.add_argument("--l2s", default="1e-5")
    parser.add_argument("--scales", default="1,0.3,0.1")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--patience", type=int, default=20)
    parser.add_argument("--max-epochs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=None, help="of the training part, to try it out")
    given = parser.parse_args()

    task = task_of(read_images(given.data), "ten")
    data = task.data if given.rows is None else task.data._replace(x=task.data.x[: given.rows], y=task.data.y[: given.rows])
    penalties = [float(text) for text in given.penalties.split(",")]
    dropouts = [float(text) for text in given.dropouts.split(",")]
    rates = [float(text) for text in given.rates.split(",")]
    l2s = [float(text) for text in given.l2s.split(",")]
    members = [(p, d, r, w, s) for p in penalties for d in dropouts for r in rates for w in l2s for s in range(given.seeds)]
    penalty, dropout, rate, l2, seeds = (np.asarray(values) for values in zip(*members, strict=True))
    width = given.width if given.width == "auto" else int(given.width)
    options: dict[str, Any] = {"depth": given.depth} if given.body != "budding" else {}
    size: dict[str, Any] = {"width": width, "max_width": given.max_width, "feature_gates": given.inputs}
    networks = jax.vmap(lambda key: Network.create(given.body, 784, 10, key=key, **size, **options))(
        seed_keys(seeds.tolist(), 0)
    )
    recipe = Recipe(
        objective="multiclass",
        batch_size=32,
        watch="error",
        select="error",
        patience=given.patience,
        scales=tuple(float(text) for text in given.scales.split(",")),
        price=given.price,
        settle=True,
        follow=given.follow,
    )
    begin = time.perf_counter()
    run = fit(
        networks,
        data,
        learning_rate=rate,
        penalty=penalty,
        budget=given.budget,
        l2=l2,
        dropout=dropout,
        key=seed_keys(seeds.tolist(), 1),
        recipe=recipe,
        max_epochs=given.max_epochs,
    )
    seconds = time.perf_counter() - begin
    records = []
    for (p, d, r, w, s), member in zip(members, run.each(), strict=True):
        small = compact(member.best)
        test = evaluate(member.best, task.test.x, task.test.y, recipe.task)
        dev = evaluate(member.best, data.dev_x, data.dev_y, recipe.task)
        inputs = 784 if member.best.features is None else int(member.best.features.is_open.sum())
        trunk = given.max_width if member.best.body.trunk is None else int(member.best.body.trunk.is_open.sum())
        record = {
            "body": given.body,
            "penalty": p,
            "dropout": d,
            "rate": r,
            "l2": w,
            "seed": s,
            "train_error": float(member.history["error"][int(member.best_epoch) - 1]),
            "test_error": float(test.error),
            "dev_error": float(dev.error),
            "n_parameters": small.n_parameters,
            "inputs": inputs,
            "trunk": trunk,
            "units": list(small.units),
            "soft_size": float(member.history["soft_size"][int(member.best_epoch) - 1]),
            "epochs": int(member.epochs),
            "best_epoch": int(member.best_epoch),
        }
        records.append(record)
        errors = (100 * record[f"{part}_error"] for part in ("train", "dev", "test"))
        print(
            f"{p:8.2g} {d:4.2f} {r:6.4f} {w:5.0e} {s}  {' '.join(f'{error:.2f}' for error in errors)} % (training, validation, "
            f"test)  {record['n_parameters']:7,} parameters: {inputs} inputs, {trunk} trunk, {small.units}; {record['epochs']}",
            flush=True,
        )
    given.out.mkdir(parents=True, exist_ok=True)
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()}
    known = {"settings": settings, "seconds": round(seconds, 1), "device": jax.devices()[0].device_kind}
    (given.out / "frontier.json").write_text(json.dumps(known | {"runs": records}, indent=1) + "\n")
    print(f"{seconds:.0f} s", flush=True)
    if not given.scratch:
        return
    fresh = from_scratch(run.best, seeds.tolist(), given.body, size | options)
    plain = replace(recipe, settle=False, price="units", optimizer=optax.chain(adam(), stay_closed()))
    knobs = {"learning_rate": rate, "penalty": 0.0, "l2": l2, "dropout": dropout}
    second = fit(fresh, data, **knobs, key=seed_keys(seeds.tolist(), 3), recipe=plain, max_epochs=given.max_epochs)
    for record, member in zip(records, second.each(), strict=True):
        again = float(evaluate(member.best, task.test.x, task.test.y, recipe.task).error)
        record |= {"scratch_test_error": again, "scratch_n_parameters": compact(member.best).n_parameters}
        print(
            f"{record['penalty']:8.2g} {record['seed']}  {100 * record['test_error']:.2f} %, from scratch {100 * again:.2f} %"
        )
    (given.out / "frontier.json").write_text(json.dumps(known | {"runs": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
