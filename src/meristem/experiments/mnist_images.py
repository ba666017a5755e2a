"""MNIST's digits as images, with the recipe of all studies on images (image_study.py); the paper's study is mnist.py."""

from meristem.data.mnist import read_images
from meristem.experiments.image_study import ImageOptions, image_plan, image_study, pictures_of
from meristem.experiments.study import Plan

TITLE = "MNIST"


def plan(options: ImageOptions) -> Plan:
    images = read_images(options.data)
    fields = {"folder": images.folder, "is_mnist": images.is_mnist}
    return image_plan(options, name="mnist-images", title=TITLE, parts=pictures_of(images), augment=("crop",), **fields)


STUDY = image_study(
    name="mnist-images",
    subject=TITLE,
    plan=plan,
    help="handwritten digits, with convolutional networks that find their channels",
    description="Train convolutional networks on MNIST; show test errors, the channels and the parameters that were "
    "found. All of it is for a GPU; two cores train some thousand images in minutes (--images 5000 --width 8 --depth 1).",
    example="--seeds 3 --budget 30000 --data DIR",
)
