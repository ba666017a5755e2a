"""The command line: parse the arguments, run the command, and turn errors into one line and an exit status."""

import logging
import os
import sys
import traceback
from collections.abc import Sequence

from meristem.cache import keep_programs
from meristem.check import short
from meristem.commands.parsing import parser
from meristem.commands.streams import safe_output
from meristem.files.atomic_write import CANNOT_WRITE, OutputError
from meristem.gpu import be_repeatable

EXTRAS = {  # package → the extra that installs it
    "matplotlib": "cli",
    "rich": "cli",
    "safetensors": "files",
    "sklearn": "sklearn",
    "threadpoolctl": "sklearn",
    "onnx": "onnx",
    "pyarrow": "tables",
    "starlette": "live",
    "tensorboardX": "tensorboard",
    "torch": "torch",
    "uvicorn": "live",
}


def missing_package(error: ImportError) -> str:
    """Return what to install; re-raise an error that is not about a package of an extra.

    >>> missing_package(ModuleNotFoundError(name="safetensors.numpy"))
    "safetensors is not installed: pip install 'meristem-nn[files]'"
    """
    package = (error.name or "").partition(".")[0]
    if package in EXTRAS:
        return f"{package} is not installed: pip install 'meristem-nn[{EXTRAS[package]}]'"
    if "pip install" in str(error):
        return str(error)
    raise error


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status (docs/api.md)."""
    with safe_output() as finish:
        try:
            return finish(_run(argv))
        except SystemExit as end:  # --help, --version, or invalid arguments
            return finish(end.code if isinstance(end.code, int) else 0)


def _run(argv: Sequence[str] | None) -> int:
    args = parser().parse_args(argv)
    keep_programs()
    be_repeatable()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports its font cache
    try:
        return int(args.run(args) or 0)
    except ValueError as error:
        return _report(str(error), 1 if isinstance(error, OutputError) else 2)
    except ImportError as error:
        return _report(missing_package(error), 2)
    except KeyboardInterrupt:
        return _report("interrupted", 130)
    except OSError as error:
        place = f"{short(str(error.filename))}: " if error.filename else ""
        return _report(f"{place}{error.strerror}", 1 if error.errno in CANNOT_WRITE else 2)
    except Exception as error:
        if not _is_platform_error(error):
            raise
        platforms, reason = os.environ.get("JAX_PLATFORMS", ""), (str(error) or "there is no such device").splitlines()[0]
        return _report(f"JAX_PLATFORMS={platforms!r} cannot be used: {reason}", 2)


def _is_platform_error(error: BaseException) -> bool:
    """Return whether JAX raised it while looking for a device."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).endswith("xla_bridge")


def _report(line: str, status: int) -> int:
    print(f"meristem: {line}", file=sys.stderr)
    return status
