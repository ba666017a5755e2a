"""Files of pictures and their classes: a folder with a folder for each class, or a table with a column of files.

    list_folder("flowers")                                        flowers/daisy/a.jpg is of the class "daisy"
    list_table("list.csv", images="file", target="kind")          files relative to the table

A folder without folders, and a table without a target, have no classes, which is enough for predictions. Hidden files, and
files with other endings than those of pictures, are passed over.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import cut, many, short
from meristem.data.image_reader import ENDINGS
from meristem.tables.reading import read_table

LEAST_EACH = 2  # pictures of a class: one to learn from, one to test on


@dataclass(frozen=True, eq=False)
class ImageList:
    """Files, with their classes if these are known, and whatever else a table says of them."""

    source: str
    root: Path  # of their names
    names: tuple[str, ...] = field(repr=False)
    labels: np.ndarray | None = field(repr=False)  # texts [n]
    groups: np.ndarray | None = field(default=None, repr=False)  # texts [n]
    copied: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # columns of the table, texts [n]
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def paths(self) -> list[Path]:
        return [self.root / name for name in self.names]

    @property
    def digest(self) -> str:
        """The SHA-256 of names, classes, groups, and sizes and times of the files: whether these are the files of a run."""
        digest = hashlib.sha256()
        for place, path in enumerate(self.paths):
            stat = path.stat() if path.is_file() else None
            row = [self.names[place], *(str(own[place]) for own in (self.labels, self.groups) if own is not None)]
            row += [] if stat is None else [str(stat.st_size), str(stat.st_mtime_ns)]
            digest.update("\0".join(row).encode("utf-8", "surrogateescape") + b"\n")
        return digest.hexdigest()

    def rows(self, rows: np.ndarray) -> "ImageList":
        labels, groups = (None if own is None else own[rows] for own in (self.labels, self.groups))
        copied = {name: column[rows] for name, column in self.copied.items()}
        return ImageList(self.source, self.root, tuple(self.names[row] for row in rows), labels, groups, copied, self.remarks)


def list_folder(folder: Path, *, needs_classes: bool = False) -> ImageList:
    """Return the pictures of a folder; those in its folders, and below them, are of the class that has the folder's name."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() in ENDINGS and path.is_file() and not _is_hidden(path.relative_to(folder))
    )
    source, endings = repr(str(folder)), ", ".join(ENDINGS)
    if not names:
        raise ValueError(f"{source} holds no pictures; give a folder with files that end in {endings}.")
    first = [name.partition("/")[0] if "/" in name else "" for name in names]
    if not needs_classes:
        return ImageList(source, folder, tuple(names), np.array(first) if "" not in first else None)
    classes = sorted({*first} - {""})
    if len(classes) < 2:
        what = f"one folder of pictures, {classes[0]!r}" if classes else "pictures, and no folders of classes"
        advice = "put those of each class into a folder of its own, or give a list: meristem fit list.csv --images … --target …"
        raise ValueError(f"{source} holds {what}; {advice}")
    empty = sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name not in classes and not _is_hidden(Path(p.name)))
    remarks = [f"no pictures in {cut(', '.join(map(repr, empty)), 200)}"] if empty else []
    if n_loose := first.count(""):
        are = many(n_loose, "picture is", "pictures are")
        remarks.append(f"{are} in no folder of a class and left out, such as {names[first.index('')]!r}")
    rows = np.flatnonzero(np.array(first) != "")
    return ImageList(source, folder, tuple(names), np.array(first), remarks=tuple(remarks)).rows(rows)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def list_table(
    table: str, *, images: str, target: str | None, group: str | None = None, keep: Sequence[str] = (), **reading: Any
) -> ImageList:
    """Return the pictures that a table names; their paths are relative to it. `reading` are options of `read_table`."""
    columns = [name for name in (images, target, group) if name is not None]
    read = read_table(table, keep=[*columns, *keep], **reading)
    for option, name in (("images", images), ("target", target), ("group_column", group)):
        if name is not None and name not in read:
            columns_text = cut(", ".join(map(repr, read.columns)), 200)
            raise ValueError(f"{option}={name!r} is no column of {read.source}; it has {columns_text}.")
    texts = {name: np.array(values, dtype=object) for name, values in read.texts.items()}
    files = texts[images]
    has_file = np.array([bool(text.strip()) for text in files], bool)
    has_label = has_file if target is None else has_file & np.array([bool(text.strip()) for text in texts[target]], bool)
    rows, remarks = np.flatnonzero(has_label), []
    if n := int((~has_file).sum()):
        remarks.append(f"{many(n, 'row names', 'rows name')} no file in column {images!r} and is left out")
    if n := int((has_file & ~has_label).sum()):
        remarks.append(f"{many(n, 'row has', 'rows have')} no class in column {target!r} and are left out")
    if not len(rows):
        raise ValueError(
            f"{read.source}: no row has {'a file' if target is None else 'a file and a class'}; check the columns."
        )
    root = Path(table).parent if table != "-" else Path()
    names = tuple(str(text).strip() for text in files)
    labels, groups = (None if name is None else texts[name].astype(str) for name in (target, group))
    copied = {name: texts[name] for name in read.texts if name in keep}
    return ImageList(read.source, root, names, labels, groups, copied, tuple(remarks)).rows(rows)


def check_classes(images: ImageList) -> None:
    """Raise ValueError where there are fewer than two classes with enough pictures."""
    assert images.labels is not None
    labels, counts = np.unique(images.labels, return_counts=True)
    if len(labels) < 2:
        raise ValueError(f"{images.source} has pictures of one class, {short(str(labels[0]))}; give some of another.")
    if (counts < LEAST_EACH).any():
        few = cut(", ".join(repr(str(label)) for label in labels[counts < LEAST_EACH]), 200)
        raise ValueError(f"{images.source} has one picture of {few}; give more, or leave the class out.")
