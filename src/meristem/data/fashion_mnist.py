"""Fashion-MNIST: ten kinds of clothes, 28 × 28, in MNIST's four IDX files; split 5:1 for training and development.

A folder that holds them is Debian's /usr/share/datasets/fashion-mnist, of the package dataset-fashion-mnist.
"""

from pathlib import Path

from meristem.data.dataset_files import find
from meristem.data.mnist import Images, images_in, split_images
from meristem.data.parts import Parts

URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
MD5 = {  # name → md5 of the download, and of the unpacked file
    "train-images-idx3-ubyte.gz": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
    "train-labels-idx1-ubyte.gz": ("25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
    "t10k-images-idx3-ubyte.gz": ("bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
    "t10k-labels-idx1-ubyte.gz": ("bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
}
FILES = {name: packed for name, (packed, _) in MD5.items()}
CONTENTS = tuple(unpacked for _, unpacked in MD5.values())
CLASSES = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


def fashion_mnist(folder: Path | None = None, *, split: int = 0) -> Parts:
    """Return 50,000 / 10,000 / 10,000 images as rows of 784 bytes, by the seed `split`, and the class of each."""
    return split_images(read_fashion(folder), split=split)


def read_fashion(folder: Path | None = None) -> Images:
    """Return the four files of a folder, of MERISTEM_DATA or of the cache, or after a download."""
    return images_in(find("fashion-mnist", FILES, URL, folder), "fashion-mnist", folder)
