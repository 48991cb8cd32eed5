"""Reads, judges and reports the programs that the arms write; imports neither arm.

A case: `from compare import run, load_run, plan, query_runs`; a profile: `read_profile`; a program of one's own:
`collectives, assert_collectives, judge, contract_rows`.  All are imported on first use.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from compare.contract.row import ContractRow
    from compare.diff.own.api import assert_collectives, collectives, contract_rows, judge
    from compare.diff.own.table import Table
    from compare.notebook import LoadedRun, Profile, load_run, plan, read_profile, run
    from compare.query.engine import query_runs

_OWN, _NOTEBOOK = "compare.diff.own.api", "compare.notebook"
_PLACES = {
    "assert_collectives": _OWN,
    "collectives": _OWN,
    "contract_rows": _OWN,
    "judge": _OWN,
    "Table": "compare.diff.own.table",
    "ContractRow": "compare.contract.row",
    "run": _NOTEBOOK,
    "load_run": _NOTEBOOK,
    "plan": _NOTEBOOK,
    "read_profile": _NOTEBOOK,
    "LoadedRun": _NOTEBOOK,
    "Profile": _NOTEBOOK,
    "query_runs": "compare.query.engine",
}
"""Name -> the module that has it.  `run` and `plan` are modules, too, which are called as these functions."""

__all__ = [
    "ContractRow",
    "LoadedRun",
    "Profile",
    "Table",
    "__version__",
    "assert_collectives",
    "collectives",
    "contract_rows",
    "judge",
    "load_run",
    "plan",
    "query_runs",
    "read_profile",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


class _CalledModule(ModuleType):
    """`compare.run` or `compare.plan`, called as the function of this name, whose signature and words it shows."""

    def __call__(self, *words: Any, **options: Any) -> Any:
        return self._function(*words, **options)

    @property
    def _function(self) -> Any:
        return getattr(import_module(_NOTEBOOK), self.__name__.rpartition(".")[2])

    def __getattribute__(self, name: str) -> Any:
        if name == "__doc__":
            return self._function.__doc__
        if name == "__signature__":
            from inspect import signature

            return signature(self._function)
        return super().__getattribute__(name)


class _Package(ModuleType):
    """Importing a submodule puts it into this package: over the function of the same name, unless it can be called."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("run", "plan") and isinstance(value, ModuleType):
            value.__class__ = _CalledModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wirediff")
    except PackageNotFoundError:  # a checkout that was not installed
        return "unknown"
