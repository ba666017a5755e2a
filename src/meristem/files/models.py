"""A model file of any kind: a network, or a fitted estimator.

    save(path, model);  load(path) → the model

Files are safetensors with a JSON header (`meristem.files`); nothing in them is executed.
"""

from typing import Any

from meristem.files import document, network
from meristem.nn import Network


def save(path: document.PATHS, model: Any) -> None:
    """Write a network or a fitted estimator; a reader sees the old file or the new one, never a part.

    >>> import jax, tempfile
    >>> model = Network.create("tunnel", n_in=2, n_out=1, depth=3, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.safetensors", model)
    ...     load(f"{folder}/model.safetensors").body.gate.value.shape
    (3, 10)
    """
    if isinstance(model, Network):
        network.save(path, model)
    elif hasattr(model, "network_"):
        from meristem.estimators import files

        files.save(path, model)
    else:
        raise ValueError(f"model is a {type(model).__name__}; give a Network, or an estimator that has been fitted.")


def load(path: document.PATHS) -> Any:
    """What `save` wrote: a Network, or an estimator that predicts the same to the bit and can go on training."""
    if document.read(path).kind == network.KIND:
        return network.load(path)
    from meristem.estimators import files

    return files.load(path)
