"""How the golden files were made, by meristem 0.1.0. They stay as they are: a file written then must be loadable now.

A change of the format adds files of its own beside them. Run with the path of a new folder.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

from meristem.data.spirals import two_spirals
from meristem.files import run_file, save
from meristem.files.atomic_write import write_whole
from meristem.files.document import packed
from meristem.files.named_arrays import by_path
from meristem.nn import Network
from meristem.train.hyperparameters import Knobs, Recipe, check_knobs
from meristem.train.programs import start, unpack, whole_epoch
from meristem.train.training_data import Data, prepare


def main(folder: Path) -> None:
    """A tunnel and a budding network, trained for a few epochs, their outputs, and a state in the middle of training."""
    recipe = Recipe(batch_size=8)
    inputs = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
    outputs = {}
    folder.mkdir()
    for name, options in {"tunnel": {"depth": 3}, "budding": {"capacity": 16, "activation": "tanh"}}.items():
        network = Network.create(name, 2, 1, width=5, key=jax.random.key(0), **options)
        data = prepare(Data(*two_spirals("difficult")), network, recipe.task).data
        state = start(network, jax.random.key(1), recipe=recipe)
        knobs = check_knobs(Knobs(0.03, 1e-4), ())
        for _ in range(30):
            state, numbers = whole_epoch(state, data, knobs, recipe=recipe)
        info = unpack(numbers)
        save(folder / f"{name}.safetensors", state.network)
        structure, arrays = run_file.state_structure(state), by_path(state)
        write_whole(folder / f"{name}-state.safetensors", packed("state", arrays, structure))
        outputs[name] = {
            "hard_size": int(info.hard_size),
            "soft_size": float(info.layer_sizes.sum()),
            "outputs": jax.vmap(state.network)(inputs).tolist(),
        }
    (folder / "outputs.json").write_text(json.dumps({"inputs": inputs.tolist(), **outputs}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
