"""The type checker that the tests run the library under: beartype, for the import hook in conftest.py."""

from typing import Self

from beartype import BeartypeConf, FrozenDict, beartype

# An int is a float, as type checkers read it; `Self` cannot be checked on single methods.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({Self: object})))
