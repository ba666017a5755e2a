"""CIFAR-10: photographs in ten classes, with the recipe of all studies on images (image_study.py)."""

from meristem.data.cifar10 import cifar10
from meristem.experiments.image_study import ImageOptions, image_plan, image_study
from meristem.experiments.study import Plan

TITLE = "CIFAR-10"
PUBLISHED = (  # in words, parameters, test error
    ("self-expanding CNN", 62_698, 0.159),
    ("hand-made", 97_530, 0.056),
    ("ResNet-20", 272_474, 0.083),
)


def plan(options: ImageOptions) -> Plan:
    return image_plan(options, name="cifar10", title=TITLE, parts=cifar10(options.data), augment=("flip", "crop"))


STUDY = image_study(
    name="cifar10",
    subject=TITLE,
    plan=plan,
    published=PUBLISHED,
    help="photographs in ten classes, with networks that find their channels",
    description="Train convolutional networks on CIFAR-10; show test errors, the channels and the parameters that were "
    "found. All of it is for a GPU; two cores train some thousand images in minutes (--images 5000 --width 8 --depth 1).",
    example="--seeds 3 --budget 100000 --data DIR",
)
