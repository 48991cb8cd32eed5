"""What judges: it reads what the arms write, and imports neither of them.

For one's own program: `from compare import collectives, assert_collectives`; imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compare.diff.own.api import assert_collectives, collectives

__all__ = ["assert_collectives", "collectives"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compare.diff.own import api

    return getattr(api, name)
