"""Files of pictures in, a model out: read, scaled to one size, fitted. `fit_images` and `ImageModel` are the public names."""

from meristem.images.image_fit import fit_images as fit_images
from meristem.images.image_model import ImageModel as ImageModel
