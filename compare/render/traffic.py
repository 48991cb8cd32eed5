"""Traffic matrices, device × device: logical bytes per step.

Logical, not routed: a permute's bytes are spread evenly over its pairs; those of any other collective go evenly
from each member of a group to all other members, whatever ring or tree carries them.  Groups share the bytes in
proportion to what their formula gives.  So a matrix adds up to devices × the rows' step bytes.
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
    """The matrices of one program: `by_axes` in row order, bytes[source, target]."""

    by_axes: Mapping[str, Matrix]
    total: Matrix
    unknown_rows: int
    """Rows left out because their executions are unknown."""

    @property
    def panels(self) -> dict[str, Matrix]:
        """The matrix of each axes, and the total if there are several."""
        return {**self.by_axes, TOTAL: self.total} if len(self.by_axes) > 1 else dict(self.by_axes)


def traffic(rows: Sequence[CollectiveRow], *, num_devices: int, slices: int = 1) -> Traffic:
    """The matrices of a program's rows.  Raises `ViewError` where groups name devices beyond the mesh.

    With several slices the program is one slice's: ids in `ici` rows are indices within every slice.
    """
    amounts: dict[tuple[str, bool, Groups], int] = {}
    for row in rows:
        groups = tuple(map(tuple, row.groups))
        if row.network == "ici":
            groups = _everywhere(groups, size=num_devices // slices, slices=slices)
        key = (row.axes, row.kind == PERMUTE, groups)
        amounts[key] = amounts.get(key, 0) + (row.step_wire_bytes or 0)
    by_axes: dict[str, Matrix] = {}
    for (axes, pairs, groups), step_bytes in amounts.items():
        matrix = by_axes.setdefault(axes, np.zeros((num_devices, num_devices)))
        if max((device for group in groups for device in group), default=0) >= num_devices:
            raise ViewError(f"a collective over {axes!r} names a device beyond the {num_devices} of the mesh")
        if step_bytes:
            _spread(matrix, groups, step_bytes * num_devices, pairs=pairs)
    return Traffic(
        by_axes=by_axes,
        total=sum(by_axes.values(), np.zeros((num_devices, num_devices))),
        unknown_rows=sum(row.executions is None for row in rows),
    )


def _everywhere(groups: Groups, *, size: int, slices: int) -> Groups:
    """The groups of one slice, repeated in each slice; groups of the full mesh stay."""
    if max((device for group in groups for device in group), default=0) >= size:
        return groups
    return tuple(
        tuple(slice_index * size + device for device in group) for slice_index in range(slices) for group in groups
    )


def _spread(matrix: Matrix, groups: Groups, amount: int, *, pairs: bool) -> None:
    """Spread `amount`, the bytes of all devices, over the groups."""
    moving = [group for group in groups if len(set(group)) > 1]
    if not moving and not groups:
        moving = [tuple(range(len(matrix)))]  # no groups: all devices
    if pairs:
        for source, target in moving:
            matrix[source, target] += amount / len(moving)
        return
    # For every formula n·f(n)·payload is proportional to n − 1.
    parts = sum(len(group) - 1 for group in moving)
    for group in moving:
        share = amount * (len(group) - 1) / parts / (len(group) * (len(group) - 1))
        block = np.ix_(group, group)
        matrix[block] += share * (1 - np.eye(len(group)))
