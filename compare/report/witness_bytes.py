"""The bytes that a witness shares with the program of an arm."""

import re
from collections.abc import Sequence

from compare.report.controls import is_counted
from compare.report.differences import CauseGroup, group_by_cause
from compare.report.grouping import sum_by
from compare.report.model.findings import Difference
from compare.report.model.program import ProgramReport

_BEFORE_PACKAGE = re.compile(r"^.*/(?=(?:transformers|tunix)/)")


def shared_bytes(witness: ProgramReport, groups: Sequence[Difference]) -> int | None:
    """How many of the excess bytes in these groups of an arm the witness moves too, per scope, axes and verdict.

    `None` where the witness cannot be counted.
    """
    if not is_counted(witness):
        return None
    places = sum_by(((group.scope, group.axes, group.verdict), group.bytes) for group in groups)
    witness_groups = group_by_cause(witness.collectives).items()
    witness_bytes = sum_by(((key.scope, key.axes, key.verdict), group.bytes) for key, group in witness_groups)
    return sum(min(amount, witness_bytes.get(place, 0)) for place, amount in places.items())


def main_line(group: CauseGroup) -> str:
    """The source line of the largest collective of a group, relative to its package; empty where unknown."""
    rows = sorted(group.rows, key=lambda row: -row.excess_bytes)
    line = next((row.source_line for row in rows if row.source_line), "")
    return _BEFORE_PACKAGE.sub("", line)
