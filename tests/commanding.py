"""The command line: `meristem` starts a process for a command, `meristem_each` one for many, `meristem_here` none.

Starting a process takes longer than finding a mistake does. Here, everything that commands call is checked against its
annotations, too, and programs that were compiled before are found again.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from unittest.mock import patch

from meristem.commands.main import main

Done = subprocess.CompletedProcess[str]
EACH = """
import contextlib, io, json, sys
from meristem.commands.main import main

for args in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            status = main(args)
        except SystemExit as end:
            status = end.code or 0
    print(json.dumps([status, out.getvalue(), errors.getvalue()]))
"""


def meristem(*args: object, code: str | None = None, **variables: object) -> Done:
    """`python -m meristem ARGS`, or `code` with them; `variables` of the environment, None: not there."""
    start = [sys.executable, "-m", "meristem"] if code is None else [sys.executable, "-c", code]
    env = {name: value for name, value in os.environ.items() if name not in variables} | {"JAX_PLATFORMS": "cpu"}
    env |= {name: str(value) for name, value in variables.items() if value is not None}
    return subprocess.run([*start, *map(str, args)], capture_output=True, text=True, env=env, timeout=300, check=False)


def meristem_here(*args: object, draws: bool = True) -> Done:
    """What a command answers that is called in this process, whose environment stays as it is; pictures only if it draws."""
    given = [str(arg) for arg in args]
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(errors))
        stack.enter_context(patch.dict(os.environ))
        stack.enter_context(patch.object(sys, "argv", ["meristem", *given]))
        if not draws:
            stack.enter_context(patch("meristem.commands.reproduce.have_matplotlib", return_value=False))
        try:
            status = main(given)
        except SystemExit as end:
            status = int(end.code or 0)
    return Done(given, status, out.getvalue(), errors.getvalue())


def meristem_each(commands: Iterable[Sequence[object]], before: str = "") -> list[Done]:
    """What each command answers, one after another in one process that has executed `before`."""
    all_args = [[str(part) for part in command] for command in commands]
    done = meristem(json.dumps(all_args), code=before + EACH)
    assert done.returncode == 0, done.stderr
    answers = map(json.loads, done.stdout.splitlines())
    return [Done(args, *answer) for args, answer in zip(all_args, answers, strict=True)]
