"""Who sends to whom: device × device, logical bytes a step.

Logical, not routed: a permute's bytes go evenly to its pairs; those of any other collective go evenly from
each member of a group to all its other members, whatever ring or tree carries them.  A group's part of the
bytes is in proportion to what its formula makes it send.  So a matrix adds up to devices × the rows' step bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.render.errors import ViewError
from compare.report.model.program import CollectiveRow

Matrix = NDArray[np.float64]

Groups = tuple[tuple[int, ...], ...]

TOTAL = "total"
PERMUTE = "collective-permute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The matrices of one program: `by_axes` in the order of the rows, bytes[source, target]."""

    by_axes: Mapping[str, Matrix]
    total: Matrix
    unknown_rows: int
    """Rows left out because their executions are unknown."""

    @property
    def panels(self) -> dict[str, Matrix]:
        """Each axes string's matrix, and the total where there are several."""
        return {**self.by_axes, TOTAL: self.total} if len(self.by_axes) > 1 else dict(self.by_axes)


def traffic(rows: Sequence[CollectiveRow], *, num_devices: int, slices: int = 1) -> Traffic:
    """The matrices of a program's rows.  Raises `ViewError` where groups name devices beyond the mesh.

    Over several slices the program is one slice's: ids of its own network are places in every slice.
    """
    amounts: dict[tuple[str, bool, Groups], int] = {}
    for row in rows:
        groups = tuple(map(tuple, row.groups))
        if row.network == "ici":
            groups = _everywhere(groups, size=num_devices // slices, slices=slices)
        key = (row.axes, row.kind == PERMUTE, groups)
        amounts[key] = amounts.get(key, 0) + (row.step_wire_bytes or 0)
    found: dict[str, Matrix] = {}
    for (axes, pairs, groups), step_bytes in amounts.items():
        matrix = found.setdefault(axes, np.zeros((num_devices, num_devices)))
        if max((device for group in groups for device in group), default=0) >= num_devices:
            raise ViewError(f"a collective over {axes!r} names a device beyond the {num_devices} of the mesh")
        if step_bytes:
            _add(matrix, groups, step_bytes * num_devices, pairs=pairs)
    return Traffic(
        by_axes=found,
        total=sum(found.values(), np.zeros((num_devices, num_devices))),
        unknown_rows=sum(row.executions is None for row in rows),
    )


def _everywhere(groups: Groups, *, size: int, slices: int) -> Groups:
    """The groups of one slice in each slice; those of the whole mesh stay."""
    if max((device for group in groups for device in group), default=0) >= size:
        return groups
    return tuple(tuple(at * size + device for device in group) for at in range(slices) for group in groups)


def _add(matrix: Matrix, groups: Groups, amount: int, *, pairs: bool) -> None:
    """Spread `amount`, the bytes of all devices together, over the groups."""
    moving = [group for group in groups if len(set(group)) > 1]
    if not moving and not groups:
        moving = [tuple(range(len(matrix)))]  # no groups: all devices
    if pairs:
        for source, target in moving:
            matrix[source, target] += amount / len(moving)
        return
    # Of every formula that is n·(n−1)/n·payload: what a group sends grows with n − 1.
    parts = sum(len(group) - 1 for group in moving)
    for group in moving:
        each = amount * (len(group) - 1) / parts / (len(group) * (len(group) - 1))
        block = np.ix_(group, group)
        matrix[block] += each * (1 - np.eye(len(group)))
