"""The model of files of pictures: the size and colors that they are read with, and a fitted estimator; and its file.

    header   {"size": [28, 28], "gray": true, "target": "class", "images": null, "facts": {…}, "search": header of a search}
    arrays   those of the search                                        see estimators/image_classifier_file.py

Facts (`ImageModel.facts`, summary.json) are checked against FACTS when a file is read or written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import many, short
from meristem.estimators import image_classifier_file
from meristem.files import FileKind, register, save
from meristem.files.atomic_write import PATHS, write_whole
from meristem.files.named_arrays import Arrays
from meristem.images.image_list import ImageList, list_folder, list_table
from meristem.images.pixels import ReadPixels, read_pixels
from meristem.json_schema import ANY, COUNT, FLAG, OBJECT, POSITIVE, TEXT, check_json
from meristem.report.baselines import NAMES
from meristem.report.image_report import ImageEvaluation, evaluate_images, from_images, image_sections
from meristem.report.scoring import CLASS, in_words
from meristem.report.task_metrics import BY_LABEL
from meristem.tables.table_model import BASELINE, SCORE, SECONDS

AT_ONCE = 4096  # files whose pixels are held at a time
ROWS = dict.fromkeys(["all", "train", "test", "searched_with", "learned_from"], POSITIVE)
FACTS: dict[Any, Any] = {
    **dict.fromkeys(["source", "target", "task", "device", "estimator"], TEXT),
    **dict.fromkeys(["cores", "folds"], POSITIVE),
    **{"n_parameters": COUNT, "seed": COUNT, "classes": [TEXT], "size": [POSITIVE], "gray": FLAG, "warnings": [TEXT]},
    "rows": ROWS | {"without_target": COUNT, TEXT: ANY},
    "baselines": {f"{name}?": BASELINE for name in NAMES},
    "score": SCORE,
    "seconds": {"all": SECONDS, TEXT: ANY},
    TEXT: ANY,
}
HEADER = {"size": [POSITIVE], "gray": FLAG, "target": TEXT, "images": (None, TEXT), "facts": OBJECT, "search": OBJECT}
PROBLEM = "its facts do not fit: "


@dataclass(frozen=True, eq=False, repr=False)
class ImageModel:
    """The result of `fit_images`; `facts` is the content of summary.json: what was used, and how good the model is.

    >>> import meristem
    >>> meristem.fit_images.__annotations__["return"] is ImageModel
    True
    """

    estimator: Any  # TunnelImageClassifierCV, fitted
    size: tuple[int, int]  # height and width that every file is scaled to
    is_gray: bool
    target: str
    images: str | None  # the column of files in the list that it was fitted to; None: a folder
    facts: dict[str, Any] = field(repr=False)
    evaluation: ImageEvaluation | None = field(default=None, repr=False)  # of the test pictures; not saved

    @property
    def classes(self) -> np.ndarray:
        """The labels, in the order of `predict_proba`'s columns."""
        return np.asarray(self.estimator.classes_)

    def __repr__(self) -> str:
        height, width = self.size
        size = many(int(self.facts["n_parameters"]), "parameter")
        return f"<ImageModel: {self.target!r} from pictures of {height} × {width}, {size}, {in_words(self.facts['score'])}>"

    def files(self, source: Any, *, images: str | None = None, keep: Sequence[str] = (), **reading: Any) -> ImageList:
        """Return the pictures of a folder, of a list in a table, or of paths."""
        if isinstance(source, list | tuple):
            return ImageList("the paths", Path(), tuple(map(str, source)), None)
        if Path(source).is_dir():
            return list_folder(Path(source))
        column = images or self.images
        if column is None:
            advice = "name its column of files: images='file', or --images file"
            raise ValueError(f"{str(source)!r} is no folder, and this model was fitted to one; {advice}.")
        return list_table(str(source), images=column, target=None, keep=keep, **reading)

    def predictions(self, paths: Sequence[Path]) -> tuple[ReadPixels, np.ndarray]:
        """Return what could be read of some files (of pixels those of the last block), and the probabilities of these."""
        rows, failures, probabilities = list[np.ndarray](), list[str](), list[np.ndarray]()
        for first in range(0, len(paths), AT_ONCE):
            read = read_pixels(paths[first : first + AT_ONCE], self.size, is_gray=self.is_gray, needs_one=False)
            failures.extend(read.failures)
            if len(read.rows):
                rows.append(read.rows + first)
                probabilities.append(self.estimator.predict_proba(read.pixels))
        if not rows:
            raise ValueError(f"None of {many(len(paths), 'file')} can be read: {failures[0]}")
        return ReadPixels(read.pixels, np.concatenate(rows), tuple(failures)), np.concatenate(probabilities)

    def predict_proba(self, source: Any) -> np.ndarray:
        """Return the probability of each class for each picture, [pictures, classes]; all of them must be readable."""
        read, probabilities = self.predictions(self.files(source).paths)
        if read.failures:
            raise ValueError(read.failures[0])
        return probabilities

    def predict(self, source: Any) -> np.ndarray:
        """Return the class of each picture of a folder (in the order of their names), of a list, or of paths."""
        return self.classes[self.predict_proba(source).argmax(1)]

    def save(self, path: PATHS) -> None:
        """Write the model to a file, which `meristem.load(path)` reads."""
        save(path, self)

    task = CLASS  # pictures have classes

    def to_onnx(self, path: PATHS) -> Path:
        """Write the compact network as an ONNX file; X [N, height, width, …] are pixels from 0 to 255, scaled to `size`."""
        write_whole(path, self.onnx_bytes())
        return Path(path)

    def onnx_bytes(self) -> bytes:
        """Return the content of that file; the same model gives the same bytes."""
        from meristem.export.endings import ending_of
        from meristem.export.onnx import onnx_bytes

        height, width = self.size
        metadata = {"size": f"{height}x{width}", "colors": "gray" if self.is_gray else "rgb", "target": self.target}
        return onnx_bytes(self.estimator.compact(), ending=ending_of(self.estimator._targets_), metadata=metadata)

    def to_c(self, path: PATHS, **options: Any) -> Path:
        """Write the compact network as a C99 file, and its header; x are pixels from 0 to 255, scaled to `size`.

        Options are those of `meristem.export.to_c`; with bits X is the training pictures: a folder, paths, or an array.
        """
        source = options.get("X")
        if source is not None and not isinstance(source, np.ndarray):
            paths = self.files(source).paths
            some = paths[:: -(-len(paths) // AT_ONCE)]  # of all classes
            options["X"] = read_pixels(some, self.size, is_gray=self.is_gray, needs_one=True).pixels
        written: Path = self.estimator.to_c(path, **options)
        return written

    def to_torch(self) -> Any:
        """Return the compact network as a plain `torch.nn.Module`, which takes what the ONNX file does."""
        return self.estimator.to_torch()

    def page(self, source: Any = None, *, images: str | None = None, target: str | None = None) -> str:
        """Return the HTML of the report."""
        from meristem.report import render_page

        evaluation = self.evaluation if source is None else self._evaluated(source, images, target)
        if evaluation is None:
            what = "a model from a file no longer has the pictures that were held out"
            raise ValueError(f"source=None: {what}; give a folder, or a list, of pictures with their classes.")
        data = from_images(self.estimator, evaluation, self.facts, is_held_out=source is None)
        return render_page(data, image_sections(data, evaluation))

    def _evaluated(self, source: Any, images: str | None, target: str | None) -> ImageEvaluation:
        """Evaluate the pictures of a folder of classes, or of a list; those that cannot be read are left out."""
        if Path(source).is_dir():
            files = list_folder(Path(source), needs_classes=True)
        else:
            files = list_table(str(source), images=images or self.images or "file", target=target or self.target)
        read = read_pixels(files.paths, self.size, is_gray=self.is_gray)
        files = files.rows(read.rows)
        return evaluate_images(self.estimator, read.pixels, np.asarray(files.labels), files.names)

    def report(self, path: PATHS, source: Any = None, *, images: str | None = None, target: str | None = None) -> Path:
        """Write an HTML report on the pictures that were held out (docs/report.md), or on those of another folder or list.

        source, images, target    as for `fit_images`; None: what was held out, which a model from a file no longer has
        """
        write_whole(path, self.page(source, images=images, target=target).encode())
        return Path(path)


def pack(model: ImageModel) -> tuple[dict[str, Any], Arrays]:
    """Return a model's header, made of JSON values, and its arrays."""
    header, arrays = image_classifier_file.pack_search(model.estimator)
    own = {"size": list(model.size), "gray": model.is_gray, "target": model.target, "images": model.images}
    return own | {"facts": model.facts, "search": header}, arrays


def unpack(header: Any, arrays: Arrays) -> ImageModel:
    """Return the model, which predicts the same to the bit; raise ValueError where its parts, or its facts, do not fit it."""
    check_json(header, HEADER)
    check_json(header["facts"], FACTS, PROBLEM)
    size, is_gray, facts = tuple(header["size"]), header["gray"], header["facts"]
    estimator = image_classifier_file.unpack_search(header["search"], arrays)
    if estimator.image_shape_ != (*size, *(() if is_gray else (3,))) or not estimator.takes_bytes_:
        raise ValueError("its size of pictures and its network do not fit together.")
    expected = {"classes": list(map(str, estimator.classes_.tolist())), "size": list(size), "gray": is_gray}
    for name, value in ({"target": header["target"]} | expected).items():
        if facts[name] != value:
            raise ValueError(f"{PROBLEM}{name} is {short(facts[name])}, and the model's is {short(value)}.")
    if any(score["measure"] not in BY_LABEL for score in (facts["score"], *facts["baselines"].values())):
        raise ValueError(f"{PROBLEM}its scores are of no metric.")
    return ImageModel(estimator, size, is_gray, header["target"], header["images"], facts)


register(FileKind("images", lambda value: isinstance(value, ImageModel), pack, unpack, unpack))
