"""What the partitioner made whole because it knew no other way from one sharding to another.

XLA warns of it ("[SPMD] Involuntary full rematerialization") where nobody reads: libtpu's log.  The compile worker has
that on its stderr.
"""

import re
from typing import TypedDict

LOG_WARNINGS = {"TPU_STDERR_LOG_LEVEL": "1", "TPU_MIN_LOG_LEVEL": "1"}
"""Environment variables by which libtpu prints warnings on stderr."""
_WARNING = re.compile(
    r"Involuntary full rematerialization\. The compiler cannot go from sharding (?P<before>\{.*?\}) "
    r"to (?P<after>\{.*?\}) efficiently for HLO operation %?(?P<name>[\w.-]+) = (?P<array>\w+\[[\d,]*\])[^\n]*"
)
_OP_NAME = re.compile(r'op_name="([^"]*)"')


class Rematerialised(TypedDict):
    """One tensor."""

    name: str
    """Of the instruction before the partitioner."""
    op_name: str
    array: str
    """`bf16[128,256,64]`, a device's part before."""
    before: str
    """Its sharding, in XLA's spelling."""
    after: str


def find_rematerialised(log: str) -> list[Rematerialised]:
    """Those that a log warns of, each once, in the order of the log."""
    found: dict[tuple[str, ...], Rematerialised] = {}
    for match in _WARNING.finditer(log):
        path = _OP_NAME.search(match[0])
        found.setdefault(
            match.groups(),
            Rematerialised(
                name=match["name"],
                op_name=path[1] if path else "",
                array=match["array"],
                before=match["before"],
                after=match["after"],
            ),
        )
    return list(found.values())
