"""What the studies on images share: one recipe and one network for all sets, which finds its channels and blocks.

Stages of 32, 64, 128 … channels at most, three inverted blocks in each, normalized over the batch, gates priced by parameters;
AdamW with a one-cycle rate, gates close from two fifths of the epochs on (train/schedules.py). The epoch is chosen by the
validation error. Only the augmentation follows the set: what keeps a picture's class. Small settings (`--images`, `--width`,
`--depth`) run on two cores.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import jax

from meristem.data.mnist import Images, split_images
from meristem.data.parts import Part, Parts
from meristem.experiments.options import Options, choice_option, folder_option, integer_option, numbers_option
from meristem.experiments.study import PARAMETERS, Arrays, Column, Plan, Study, Task
from meristem.nn import Network
from meristem.nn.images import IMAGE_BODIES
from meristem.pictures.studies.found_networks import STRUCTURE
from meristem.pictures.studies.study_pictures import ImagePictures
from meristem.show.network_structure import stack_arrays, stages_of
from meristem.train.augmentation import AUGMENTATIONS
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data

PENALTY, RATE, EPOCHS, BATCH = 3e-5, 1e-2, 50, 256
WIDTH, BLOCKS, STAGES = 32, 3, 3
WEIGHT_DECAY, B2, SMOOTHING = 0.02, 0.99, 0.1
NO_AUGMENTATION = "none"


@dataclass(frozen=True, kw_only=True)
class ImageOptions(Options):
    """The options of a study on images."""

    default_rate: ClassVar[float] = RATE

    data: Path | None = folder_option("the files")  # noqa: RUF009
    images: int | None = integer_option(
        None, "train on so many images, and validate on a fifth as many; test on all", least=5, default_text="all"
    )
    augment: tuple[str, ...] | None = choice_option(
        None,
        [NO_AUGMENTATION, *AUGMENTATIONS],
        f"changes to the images of a step, with commas, of {', '.join(AUGMENTATIONS)}, or {NO_AUGMENTATION}",
        default_text="what keeps the classes of this set",
    )
    smoothing: tuple[float, ...] = numbers_option(
        (SMOOTHING,), "the share of a target that goes to all classes alike", "of at least 0 and below 1", lambda v: 0 <= v < 1
    )
    batch_size: int = integer_option(BATCH, "images in a step")
    models: tuple[str, ...] = choice_option(("conv-inverted",), IMAGE_BODIES, f"with commas, of {', '.join(IMAGE_BODIES)}")
    max_epochs: int = integer_option(EPOCHS, "the length of the training, in which the rate rises and falls once")
    width: int | None = integer_option(
        None, "channels of the first stage at most; each further one may have twice as many", default_text=str(WIDTH)
    )
    depth: int | None = integer_option(None, "blocks of each stage", default_text=str(BLOCKS))
    penalty: tuple[float, ...] = (PENALTY,)


def image_plan(options: ImageOptions, *, name: str, title: str, parts: Parts, augment: tuple[str, ...], **fields: Any) -> Plan:
    """Return the one task of a set of images; `fields` go into summary.json."""
    if len(options.smoothing) > 1:
        raise ValueError("--smoothing is one number; run the study once for each.")
    sizes = (None, None) if options.images is None else (options.images, -(-options.images // 5))
    train, dev, test = (Part(part.x[:n], part.y[:n]) for part, n in zip(parts, (*sizes, None), strict=True))
    if options.augment is not None:
        augment = tuple(change for change in options.augment if change != NO_AUGMENTATION)
    recipe = Recipe(
        objective="multiclass",
        batch_size=options.batch_size,
        depth_decay=1.0,
        b2=B2,
        select="error",
        price="parameters",
        settle=True,
        compile_fast=True,
        schedule="one-cycle",
        weight_decay=WEIGHT_DECAY,
        smoothing=options.smoothing[0],
        augment=augment,
        precision="float32" if jax.default_backend() == "cpu" else "bfloat16",
    )
    n_classes = 1 + int(max(part.y.max() for part in (train, dev, test)))
    data = Data(*train, *dev)
    task = Task(name, data, n_classes, recipe, WIDTH, BLOCKS, options.max_epochs, Data(*test), create=images_network)
    title = title if options.images is None else f"{title}, {len(train.y):,} images"
    record_fields = {"images": len(train.y), "validation_images": len(dev.y), "test_images": len(test.y)}
    return Plan([task], title, is_papers_data=False, summary_fields={"data": record_fields | fields})


def pictures_of(images: Images) -> Parts:
    """Return the images of four IDX files in three parts, each as [height, width]."""
    return Parts(*(part._replace(x=part.x.reshape(-1, *images.shape)) for part in split_images(images)))


def images_network(task: Task, body: str, *, key: Any) -> Network:
    """Return a network on the images of a task, of as many stages as halve its positions down to four at least."""
    shape = task.data.x.shape[1:]
    stages = max(1, min(STAGES, (min(shape[:2]) // 4).bit_length()))
    channels = tuple(task.width * 2**stage for stage in range(stages))
    sizes: dict[str, Any] = {"max_width": channels, "depth": task.depth}
    return Network.create(body, input_shape=shape, n_out=task.n_out, **sizes, normalize=True, key=key)


def structure_arrays(network: Network) -> Arrays:
    """Return the gates of a network, of which its picture is drawn."""
    return {f"{STRUCTURE}{name}": array for name, array in stack_arrays(stages_of(network)).items()}


def image_study(*, name: str, subject: str, plan: Callable[[ImageOptions], Plan], published: Any = (), **texts: Any) -> Study:
    """Return a study on a set of images; `texts` are its help, description and example."""
    return Study(
        name=name,
        options=ImageOptions,
        plan=plan,
        columns=(
            Column("test error, %", "test_error", 2, percent=True, line="test error {} %"),
            Column("validation", "dev_error", 2, percent=True),
            Column("training", "train_error", 2, percent=True),
            Column("epochs", "epochs"),
            Column("channels, sum of gates", "best_soft_size", 1),
            replace(PARAMETERS[0], line="{} parameters"),
            PARAMETERS[1],
        ),
        pictures=ImagePictures(subject, {name: subject}, published=published),
        arrays=structure_arrays,
        **texts,
    )
