"""Fit a model to files of pictures: read them, hold some out, search the penalty, score the model, and record the facts.

    fit_images("flowers") → ImageModel                                   a folder with a folder for each class
    fit_images("list.csv", images="file", target="kind")                 files relative to the list

Baselines learn from the same pixels as the search: the most frequent class, logistic regression and an MLP. Of fewer than 2,000
pictures each penalty is trained in five folds, of more with a fifth of them held out once.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from sklearn.model_selection import train_test_split

import meristem
from meristem.check import check_number, check_size, many, unknown
from meristem.estimators.encoded_table import checked_groups
from meristem.estimators.image_cv import ImageSearch, TunnelImageClassifierCV
from meristem.estimators.parameters import check_parameters
from meristem.images.image_baselines import score_baselines
from meristem.images.image_list import ImageList, check_classes, list_folder, list_table
from meristem.images.image_model import ImageModel
from meristem.images.image_time import Deadline, fit_into
from meristem.images.pixels import choose_size, parse_size, read_pixels
from meristem.paths.folds import draw_groups
from meristem.report.image_report import compare_images, evaluate_images
from meristem.report.report_text import clearly_worse, worse_warnings
from meristem.report.scoring import CLASS, in_words
from meristem.report.task_metrics import METRICS, check_metric, evaluate, headline

MANY, FOLDS, HELD_OUT = 2000, 5, 0.2  # pictures from which on a share is held out once
LEAST_BYTES, COPIES = 2**21, 8  # of the files of a fit; of a network's numbers in a run
POINT = ("penalty", "loss", "error", "n_parameters")
TARGET = "class"  # of folders
DEFAULT_TEST = 0.2


def fit_images(
    source: Any,
    *,
    images: str | None = None,
    target: str | None = None,
    group_column: str | None = None,
    image_size: int | str | None = None,
    test: Any = DEFAULT_TEST,
    drop_duplicates: bool = False,
    seconds: float | None = None,
    metric: str | None = None,
    random_state: int = 0,
    verbose: bool = False,
    **options: Any,
) -> ImageModel:
    """Return a model that predicts the class of pictures.

    source         a folder with a folder of pictures for each class; or the path of a table that lists files
    images, target the columns of a list that hold the files, relative to it, and their classes
    group_column   of a list, such as a patient: no group is on both sides, in test and folds
    image_size     a side, or "HEIGHTxWIDTH", that every file is scaled to; None: the medians of the files, at most 64
    test           the share of pictures that is held out, or another folder or list of them
    drop_duplicates  whether pictures with the same pixels are used once
    seconds        a time limit for everything
    metric         what the model is judged by, and the search chooses by, such as "balanced_accuracy" or "log_loss"
    options        further parameters of TunnelImageClassifierCV

    >>> import tempfile
    >>> from pathlib import Path
    >>> from meristem.data.image_reader import png_bytes
    >>> folder, quick = tempfile.TemporaryDirectory(), {"cv": 0.5, "penalties": [1e-4], "channels": 2, "epochs": 1}
    >>> for number in range(40):
    ...     place = Path(folder.name) / ("dark" if number % 2 else "light")
    ...     place.mkdir(exist_ok=True)
    ...     _ = (place / f"{number}.png").write_bytes(png_bytes(np.full((6, 6), number + 150 * (1 - number % 2), np.uint8)))
    >>> model = fit_images(folder.name, **quick)
    >>> model.size, model.classes.tolist(), model.predict([f"{folder.name}/dark/1.png"]).shape
    ((6, 6), ['dark', 'light'], (1,))
    >>> folder.cleanup()
    """
    begun = time.monotonic()
    check_image_options(test=test, seconds=seconds, metric=metric, random_state=random_state, **options)
    columns: dict[str, Any] = {"images": images, "target": target, "group_column": group_column}
    files = read_list(source, **columns)
    test_files = None if isinstance(test, float) else read_list(test, **columns)
    own: dict[str, Any] = {"image_size": image_size, "test": test, "drop_duplicates": drop_duplicates, "metric": metric}
    plan = plan_images(files, test_files, **columns, **own, random_state=random_state, verbose=verbose, **options)
    return fit_planned_images(plan, seconds=seconds, begun=begun)


def check_image_options(*, test: Any, seconds: float | None, metric: str | None, random_state: int, **options: Any) -> None:
    """Raise ValueError where an option does not fit, before anything is read."""
    if seconds is not None:
        check_number("seconds", seconds, "above 0", lambda value: 0 < value < np.inf)
    if isinstance(test, int | float):
        check_number("test", test, "above 0 and below 1", lambda value: 0 < value < 1)
    check_size("random_state", random_state, least=0)
    if metric not in (None, *METRICS):
        raise unknown("metric", metric, list(METRICS))
    names = TunnelImageClassifierCV().get_params()
    for name in options:
        if name not in names:
            raise unknown("option", name, sorted(names))
    check_parameters(TunnelImageClassifierCV(**options))


def read_list(source: Any, *, images: str | None, target: str | None, group_column: str | None, **reading: Any) -> ImageList:
    """Return the files and classes of a folder or a list; `reading` are options of `read_table`."""
    if Path(source).is_dir():
        for option, name in (("images", images), ("target", target), ("group_column", group_column)):
            if name is not None:
                raise ValueError(f"{option}={name!r} is for a list of files, and {str(source)!r} is a folder; leave it out.")
        return list_folder(Path(source), needs_classes=True)
    for option, name in (("images", images), ("target", target)):
        if name is None:
            what = "the column of files" if option == "images" else "the column of classes"
            raise ValueError(f"{option}={name!r} must name {what} of the list {str(source)!r}.")
    return list_table(str(source), images=str(images), target=target, group=group_column, **reading)


@dataclass(frozen=True, eq=False)
class ImagePlan:
    """Pictures that are read and divided, and the search that is to be fitted; all errors are raised before there is one."""

    files: ImageList  # those that could be read
    test_files: ImageList | None
    size: tuple[int, int]
    is_gray: bool
    pixels: np.ndarray = field(repr=False)  # of the pictures to learn from
    labels: np.ndarray = field(repr=False)
    groups: np.ndarray | None = field(repr=False)
    test_pixels: np.ndarray = field(repr=False)
    test_labels: np.ndarray = field(repr=False)
    test_names: tuple[str, ...] = field(repr=False)
    n_all: int
    estimator: Any  # TunnelImageClassifierCV, not fitted
    search: ImageSearch
    target: str
    images: str | None
    remarks: tuple[str, ...]

    @property
    def n_bytes(self) -> int:
        """The approximate size of the files of the fit."""
        numbers = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.search.states[0].network, eqx.is_array)))
        return LEAST_BYTES + 4 * COPIES * numbers * (len(self.search.folds) + 1)

    def words(self) -> list[str]:
        """Return lines for the user: pictures, classes, size, and remarks."""
        height, width = self.size
        labels, counts = np.unique(self.labels, return_counts=True)
        tested = "" if self.test_files is None else f" of {self.test_files.source}"
        where = f"{many(len(self.labels), 'picture')} to learn from, {len(self.test_labels):,}{tested} to test on"
        return [
            f"{self.files.source}: {where}",
            f"{many(len(labels), 'class', 'classes')}, of {min(counts):,} to {max(counts):,} pictures to learn from",
            f"every picture is scaled to {height} × {width}, {'gray' if self.is_gray else 'in color'}",
            *(f"warning: {line}" for line in self.remarks),
        ]


def plan_images(
    files: ImageList,
    test_files: ImageList | None,
    *,
    images: str | None,
    target: str | None,
    group_column: str | None,
    image_size: int | str | None,
    test: Any,
    drop_duplicates: bool,
    metric: str | None,
    random_state: int,
    **options: Any,
) -> ImagePlan:
    """Read the pictures, divide them, and plan the search; raise ValueError where something does not fit."""
    check_classes(files)
    size = choose_size(files.paths) if image_size is None else parse_size(str(image_size))
    read = read_pixels(files.paths, size)
    remarks = [*files.remarks, *([read.words] if read.words else [])]
    n_all, files, pixels = len(files), files.rows(read.rows), read.pixels
    check_classes(files)
    is_gray, labels = pixels.ndim == 3, np.asarray(files.labels)
    digests = np.array([hashlib.blake2b(image.tobytes(), digest_size=16).hexdigest() for image in pixels])
    numbers = np.unique(digests, return_inverse=True)[1].reshape(-1)
    first = np.unique(numbers, return_index=True)[1]
    if len(first) < len(pixels):
        n_twice = len(pixels) - len(first)
        alike = many(n_twice, "picture has", "pictures have")
        if drop_duplicates:
            rows = np.sort(first)
            files, pixels, labels, numbers = files.rows(rows), pixels[rows], labels[rows], np.arange(len(rows))
            check_classes(files)
            remarks.append(f"{alike} the pixels of another one: each is used once")
        else:
            remarks.append(f"{alike} the pixels of another one, on the same side of the test: --drop-duplicates uses each once")
    # Pictures with the same pixels, and those of a group, are on one side of the test and of each fold.
    groups = numbers if files.groups is None else checked_groups(files.groups, len(labels))
    by_group = files.groups is not None or len(first) < len(numbers)
    if test_files is None:
        train, held_out = _divided(labels, groups, float(test), random_state, by_group=by_group)
        test_pixels, test_labels = pixels[held_out], labels[held_out]
        test_names = tuple(files.names[row] for row in held_out)
    else:
        test_read = read_pixels(test_files.paths, size, is_gray=is_gray)
        remarks += [f"{test_files.source}: {line}" for line in (*test_files.remarks, test_read.words) if line]
        train, test_files = np.arange(len(labels)), test_files.rows(test_read.rows)
        test_pixels, test_labels, test_names = test_read.pixels, np.asarray(test_files.labels), test_files.names
    train_labels = labels[train]
    classes = np.unique(train_labels)
    if metric is not None:
        check_metric(metric, CLASS, len(classes))
    if not np.isin(test_labels, classes).any():
        raise ValueError(f"No picture to test on is of a class that is learned, such as {str(classes[0])!r}.")
    estimator = TunnelImageClassifierCV(**{"cv": HELD_OUT if len(train) >= MANY else FOLDS, "rule": "1se"} | options)
    if isinstance(estimator.cv, int):
        least = int(np.unique(train_labels, return_counts=True)[1].min())
        estimator.set_params(cv=max(2, min(estimator.cv, least)) if "cv" not in options else estimator.cv)
    estimator.set_params(random_state=random_state, scoring=metric)
    own_groups = groups[train] if by_group else None
    search = estimator._planned(pixels[train], train_labels, groups=own_groups)
    return ImagePlan(
        files,
        test_files,
        size,
        is_gray,
        pixels[train],
        train_labels,
        own_groups,
        test_pixels,
        test_labels,
        test_names,
        n_all,
        estimator,
        search,
        TARGET if target is None else target,
        images,
        tuple(remarks),
    )


def _divided(
    labels: np.ndarray, groups: np.ndarray, share: float, seed: int, *, by_group: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and to test on, stratified by class, groups on one side."""
    codes = np.unique(labels, return_inverse=True)[1]
    if by_group:
        is_test = draw_groups(groups, codes, share * len(labels), seed)
        train, held_out = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    else:
        n_test, n_classes = int(np.ceil(share * len(labels))), int(codes.max()) + 1
        options = {"stratify": codes if n_classes <= min(n_test, len(labels) - n_test) else None, "random_state": seed}
        train, held_out = map(np.sort, train_test_split(np.arange(len(labels)), test_size=n_test, **options))
    if len(np.unique(labels[train])) < 2 or not len(held_out):
        what = f"test={share:g} of {many(len(labels), 'picture')} leaves too few to learn from or to test on"
        raise ValueError(f"{what}; give more.")
    return train, held_out


def fit_planned_images(plan: ImagePlan, *, seconds: float | None = None, begun: float) -> ImageModel:
    """Return the fitted model of a plan; `begun` is when a time limit began, a time of `time.monotonic`."""
    estimator, search = plan.estimator, plan.search
    say: Callable[[str], None] = partial(print, file=sys.stderr, flush=True) if estimator.verbose else lambda line: None
    for line in plan.words():
        say(line)
    seed, read, targets = int(estimator.random_state), time.monotonic(), search.table.targets
    classes = targets.classes
    codes = {label: code for code, label in enumerate(classes.tolist())}
    true = np.array([codes.get(label, -1) for label in plan.test_labels.tolist()])
    scores, predicted = score_baselines(plan, true, seconds, say)
    compared = time.monotonic()
    deadline = Deadline()
    if seconds is not None:
        search = fit_into(estimator, search, plan.groups, seconds, begun + seconds)
        deadline = estimator.callbacks[-1]
    estimator.fit_search(search)
    estimator.callbacks = estimator.executor = None  # no file holds them
    searched = time.monotonic()
    evaluation = evaluate_images(estimator, plan.test_pixels, plan.test_labels, plan.test_names, predicted)
    measured, metric = evaluate(evaluation.outcome, seed), headline(evaluation.outcome, estimator.scoring)
    folds = len(search.folds)
    facts: dict[str, Any] = {
        "source": plan.files.source.strip("'\""),
        "target": plan.target,
        "task": CLASS,
        "classes": [str(label) for label in classes.tolist()],
        "seed": seed,
        "size": list(plan.size),
        "gray": plan.is_gray,
        "rows": {
            "all": plan.n_all,
            "without_target": 0,
            "train": len(plan.labels),
            "test": len(true),
            "searched_with": len(search.labels),
            "learned_from": len(search.labels),
        },
        "estimator": type(estimator).__name__,
        "body": estimator.body,
        "rule": estimator.rule,
        "budget": estimator.budget,
        "folds": folds,
        "chosen": {"penalty": estimator.penalty_},
        "path": [{name: getattr(point, name) for name in POINT} for point in estimator.path_.points],
        "n_parameters": int(estimator.n_parameters_),
        "score": measured[metric.name],
        "test": {name: score["value"] for name, score in measured.items()},
        "test_intervals": {name: [score["low"], score["high"]] for name, score in measured.items()},
        "threshold": None,
        "positive_class": str(classes[targets.positive]) if len(classes) == 2 else None,
        "baselines": scores,
        "seconds": {
            "limit": seconds,
            "ended_the_search": deadline.has_ended,
            "reading": round(read - begun, 3),
            "baselines": round(compared - read, 3),
            "search": round(searched - compared, 3),
            "all": round(time.monotonic() - begun, 3),
        },
        "versions": {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__},
        "device": jax.default_backend(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    if search.flash is not None:
        facts["flash"] = {"bytes": search.flash.compact_bytes(estimator._compact_), "bits": estimator.bits}
    comparisons = compare_images(facts, evaluation)
    for facts_of_other, comparison in zip(scores.values(), comparisons, strict=True):
        if np.isfinite(comparison.gain).all():
            facts_of_other["gain"] = dict(zip(("value", "low", "high"), comparison.gain, strict=True))
    facts["warnings"] = [*worse_warnings(comparisons, CLASS), *plan.remarks]
    say(f"found: {in_words(facts['score'])}{clearly_worse(comparisons, CLASS)}; {facts['n_parameters']:,} parameters")
    return ImageModel(estimator, plan.size, plan.is_gray, plan.target, plan.images, facts, evaluation)
