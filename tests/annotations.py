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
from types import CodeType, FunctionType
from typing import Any, Self, get_args

import jaxtyping
from beartype import BeartypeConf, FrozenDict, beartype

# An int is a float, as type checkers read it; `Self` cannot be checked on single methods.
checked = beartype(
    conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({Self: object}), violation_type=jaxtyping.TypeCheckError)
)
in_context = jaxtyping.jaxtyped  # whose place `checked_call` takes
KNOWN: dict[tuple[str, CodeType], tuple[dict[str, Any], Any, bool]] = {}  # annotations, the function that checks them, arrays?


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
    checks, has_arrays = _checks_of(what)
    if has_arrays:
        checks = _in_a_context(checks)
    checks.checks = True
    return checks


def _checks_of(what: Any) -> tuple[Any, bool]:
    """The function with its checks, and whether some are about arrays.

    A function inside another is made anew at every call of that one: beartype writes and compiles its checks once, here, and
    each next one gets them with itself in the place of the first.
    """
    key, annotations = (what.__module__, what.__code__), inspect.get_annotations(what)
    if key not in KNOWN or KNOWN[key][0] != annotations:
        KNOWN[key] = annotations, checked(what), any(map(about_arrays, annotations.values()))
        return KNOWN[key][1:]
    _, first, has_arrays = KNOWN[key]
    if "__beartype_func" not in (first.__kwdefaults__ or {}):  # nothing to check
        return what, has_arrays
    again = FunctionType(first.__code__, first.__globals__, first.__name__, first.__defaults__, first.__closure__)
    again.__kwdefaults__ = first.__kwdefaults__ | {"__beartype_func": what}
    return functools.update_wrapper(again, what), has_arrays


def _in_a_context(checks: Any) -> Any:
    @functools.wraps(checks)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with in_context("context"):
            return checks(*args, **kwargs)

    return call
