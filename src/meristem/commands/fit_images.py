"""`meristem fit FOLDER`, and `meristem fit LIST --images COLUMN --target COLUMN`: what `meristem fit` does with pictures."""

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from meristem.commands.fit import Job, c_files
from meristem.commands.parsing import as_options
from meristem.images.image_fit import DEFAULT_TEST, ImagePlan, check_image_options, fit_planned_images, plan_images, read_list
from meristem.images.image_model import ImageModel
from meristem.tables.evaluation import agreement
from meristem.train.placement import check_executor

REFUSED = {"threshold": "two classes of a table", "time_column": "rows of a table"}  # options, and what they are for
COMPARED, BLOCK = 1024, 256  # pictures that the ONNX file is compared on, and at a time


def image_job(args: argparse.Namespace) -> Job:
    """Read the pictures and plan the search."""
    for name, what in REFUSED.items():
        if getattr(args, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')}={getattr(args, name)} is for {what}, not for pictures; leave it out.")
    if args.task not in (None, "class"):
        raise ValueError(f"--task={args.task} is not for pictures, which have classes; leave it out.")
    settings: dict[str, Any] = {name: getattr(args, name) for name in ("budget", "rule", "refit")}
    settings |= {"bits": args.bits} if isinstance(args.budget, str) else {}
    settings |= {} if args.body is None else {"body": args.body}
    settings |= {} if args.max_epochs is None else {"epochs": args.max_epochs}
    own = {"metric": args.metric, "random_state": args.seed}
    columns = {"images": args.images, "target": args.target, "group_column": args.group_column}
    reading = {"sep": args.sep, "encoding": args.encoding}
    test = DEFAULT_TEST if args.test is None else args.test
    names = ["sep", "encoding", "executor", "address", "test", "image_size", "seconds", "metric", *columns, *settings]
    with as_options(*names, random_state="seed", epochs="max_epochs", keep="images"):
        check_executor(args.executor, args.address)
        check_image_options(test=test, seconds=args.seconds, **own, **settings)
        files = read_list(args.table, **columns, **reading)
        print(f"reading {len(files):,} pictures of {files.source}", file=sys.stderr, flush=True)
        test_files = None if args.test_file is None else _test_list(args.test_file, columns, reading)
        digests = {"table": files.digest, "test": None if test_files is None else test_files.digest}
        division = {"image_size": args.image_size, "test": args.test_file or test, "drop_duplicates": args.drop_duplicates}
        plan = plan_images(files, test_files, **columns, **division, **own, verbose=True, **settings)
    recorded = settings | own | columns | division | {"seconds": args.seconds}
    parts = (recorded, digests, (*settings, "seconds"), plan.n_bytes, plan.estimator)
    fit = partial(_fit, plan, args.seconds)
    c = partial(c_files, rows=plan.pixels, pixels="uint8") if isinstance(args.budget, str) else None
    return Job(*parts, fit, _onnx, ImageModel.page, c, report_source=", folder")


def _fit(plan: ImagePlan, seconds: float | None, begun: float) -> ImageModel:
    return fit_planned_images(plan, seconds=seconds, begun=begun)


def _test_list(source: str, columns: dict[str, Any], reading: dict[str, Any]) -> Any:
    own = dict.fromkeys(columns) if Path(source).is_dir() else columns
    return read_list(source, **own, **reading)


def _onnx(model: ImageModel) -> bytes:
    """Return the ONNX file, compared with the model on held-out pictures."""
    data, evaluation = model.onnx_bytes(), model.evaluation
    assert evaluation is not None

    def batches() -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        for first in range(0, min(COMPARED, len(evaluation.pixels)), BLOCK):
            some = slice(first, first + BLOCK)
            yield {"X": evaluation.pixels[some].astype(np.float32)}, evaluation.outputs[some]

    model.facts["onnx"] = agreement(data, model, batches())
    return data
