"""How the tests run the library: every annotation is checked at every call, by beartype; shapes by jaxtyping.

jaxtyping's own decorator binds the arguments of every call and checks them twice, which took a fifth of the suite's time. It
must do so for sizes that are computed from arguments ("{n}"), which this library does not have. What counts is that all the
annotations of one call mean the same by "width", and that is a context around the call; where no annotation is about arrays,
not even that is needed.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, get_args

import jaxtyping
from beartype import BeartypeConf, FrozenDict, beartype

# An int is a float, as type checkers read it; `Self` cannot be checked on single methods.
checked = beartype(
    conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({Self: object}), violation_type=jaxtyping.TypeCheckError)
)
in_context = jaxtyping.jaxtyped  # whose place `checked_call` takes


def about_arrays(annotation: Any) -> bool:
    """Whether jaxtyping is somewhere in it, or may be: a string says nothing.

    >>> about_arrays(dict[str, jaxtyping.Float[jaxtyping.Array, "width"]]), about_arrays(dict[str, int])
    (True, False)
    """
    of_jaxtyping = (getattr(annotation, "__module__", ""), getattr(type(annotation), "__module__", ""))
    return (
        isinstance(annotation, str)
        or any(module.split(".")[0] == "jaxtyping" for module in of_jaxtyping)
        or any(map(about_arrays, get_args(annotation)))
    )


def checked_call(*, typechecker: object = None) -> Callable[[Any], Any]:
    """In place of `jaxtyping.jaxtyped`, as the import hook writes it above every function and class."""
    return _checked


def _checked(what: Any) -> Any:
    if getattr(what, "__no_type_check__", False):
        return what
    if inspect.isclass(what):
        if dataclasses.is_dataclass(what) and not hasattr(what.__init__, "checks"):
            what.__init__ = _checked(what.__init__)  # type: ignore[misc]
        return what
    if isinstance(what, classmethod | staticmethod):
        return type(what)(_checked(what.__func__))
    if isinstance(what, property):
        return property(*(part and _checked(part) for part in (what.fget, what.fset, what.fdel)))
    if inspect.isgeneratorfunction(what):
        return in_context(what, typechecker=checked)  # type: ignore[call-overload]
    checks = checked(what)
    if any(map(about_arrays, inspect.get_annotations(what).values())):
        checks = _in_a_context(checks)
    checks.checks = True
    return checks


def _in_a_context(checks: Any) -> Any:
    @functools.wraps(checks)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with in_context("context"):
            return checks(*args, **kwargs)

    return call
