"""The studies: every module of this package that has a `STUDY` (see study.py) is one."""

from importlib import import_module
from pkgutil import iter_modules

from meristem.experiments.study import Study

_MODULES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
STUDIES: dict[str, Study] = {module.STUDY.name: module.STUDY for module in _MODULES if hasattr(module, "STUDY")}
