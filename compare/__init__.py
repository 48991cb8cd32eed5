"""Reads, judges and reports the programs that the arms write; imports neither arm.

For a user's own program: `from compare import assert_collectives, collectives, contract_rows, judge`, imported on
first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from compare.diff.own.api import assert_collectives, collectives, contract_rows, judge

__all__ = ["__version__", "assert_collectives", "collectives", "contract_rows", "judge"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compare.diff.own import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wirediff")
    except PackageNotFoundError:  # a checkout that was not installed
        return "unknown"
