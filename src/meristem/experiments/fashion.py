"""Fashion-MNIST: ten kinds of clothes, with the recipe of all studies on images (image_study.py)."""

from meristem.data.fashion_mnist import CONTENTS, read_fashion
from meristem.experiments.image_study import ImageOptions, image_plan, image_study, pictures_of
from meristem.experiments.study import Plan

TITLE = "Fashion-MNIST"


def plan(options: ImageOptions) -> Plan:
    images = read_fashion(options.data)
    fields = {"folder": images.folder, "is_fashion_mnist": images.md5 == CONTENTS}
    return image_plan(options, name="fashion", title=TITLE, parts=pictures_of(images), augment=("flip", "crop"), **fields)


STUDY = image_study(
    name="fashion",
    subject=TITLE,
    plan=plan,
    help="clothes in ten classes, with networks that find their channels",
    description="Train convolutional networks on Fashion-MNIST; show test errors, the channels and the parameters that were "
    "found. All of it is for a GPU; two cores train some thousand images in minutes (--images 5000 --width 8 --depth 1).",
    example="--seeds 3 --budget 50000 --data /usr/share/datasets",
)
