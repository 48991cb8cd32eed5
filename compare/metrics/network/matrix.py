"""Traffic matrices of one step: bytes between devices, logically and as routed on the torus.

After the traffic matrices of TopoOpt (Wang et al., NSDI 2023), per axis and in total.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pandas as pd

from compare.metrics.network.routes import Loads, Torus, link_loads
from compare.metrics.network.sent_bytes import SentBytes
from compare.report.model.mesh import DeviceMesh

COLUMNS = ["device_from", "device_to", "axes", "logical_bytes", "routed_bytes"]

Amounts = dict[tuple[str, str, tuple[int, ...]], Fraction]
"""(axes, kind, group) -> payload of one step."""


def traffic_matrix(sent: Mapping[str, SentBytes], mesh: DeviceMesh) -> pd.DataFrame:
    """COLUMNS, one row for each pair of devices and axes with traffic; bytes of one step.

    logical: a device sends what docs/definitions.md says, the same to each other member of its group.  routed: between
    neighbours, by `routes`; every hop counts.  Collectives of unknown executions are left out: `list_uncounted` names
    them.
    """
    torus = Torus.of(mesh)
    cells: dict[tuple[str, tuple[int, int]], list[Fraction]] = {}
    units: dict[tuple[str, tuple[int, ...]], Loads] = {}
    for (axes, kind, group), amount in _amounts(sent).items():
        for pair, part in logical_bytes(kind, group).items():
            _cell(cells, axes, pair)[0] += part * amount
        if (kind, group) not in units:
            units[kind, group] = link_loads(kind, group, torus)
        for pair, part in units[kind, group].items():
            _cell(cells, axes, pair)[1] += part * amount
    rows = [(*pair, axes, float(meant), float(carried)) for (axes, pair), (meant, carried) in sorted(cells.items())]
    return pd.DataFrame(rows, columns=COLUMNS)


def ici_bytes_by_chip(sent: Mapping[str, SentBytes], mesh: DeviceMesh) -> list[float] | None:
    """What each chip sends in a step over ICI: the logical bytes for other chips of its slice.

    Chips in the order of their first device; `None` where the executions of a collective are unknown.
    """
    if list_uncounted(sent):
        return None
    slices = [known.place.slice_index for known in mesh.devices]
    chips = [tuple(known.place)[:-1] for known in mesh.devices]
    totals = dict.fromkeys(chips, Fraction(0))
    for (_, kind, group), amount in _amounts(sent).items():
        if kind == "collective-permute":
            source, target = group
            if slices[source] == slices[target] and chips[source] != chips[target]:
                totals[chips[source]] += amount
            continue
        part = Fraction(2 if kind == "all-reduce" else 1, len(group)) * amount
        members = Counter(chips[device] for device in group)
        in_slice = Counter(slices[device] for device in group)
        for chip, count in members.items():
            totals[chip] += part * count * (in_slice[chip[0]] - count)
    return [float(total) for total in totals.values()]


def list_uncounted(sent: Mapping[str, SentBytes]) -> list[str]:
    """The collectives that the matrix leaves out."""
    return [name for name, collective in sent.items() if collective.executions is None]


def logical_bytes(kind: str, group: Sequence[int]) -> Loads:
    """(from, to) -> bytes per byte of payload that the target needs from the source."""
    if kind == "collective-permute":
        source, target = group
        return {(source, target): Fraction(1)} if source != target else {}
    part = Fraction(2 if kind == "all-reduce" else 1, len(group))
    return {(source, target): part for source in group for target in group if source != target}


def _amounts(sent: Mapping[str, SentBytes]) -> Amounts:
    amounts: Amounts = {}
    for collective in sent.values():
        for group in collective.groups if collective.executions is not None else ():
            key = (collective.axes, collective.kind, group)
            # All members of a group run it equally often, or the program would hang.
            runs = collective.executions[group[0]] if collective.executions is not None else 0
            amounts[key] = amounts.get(key, Fraction(0)) + collective.payload_bytes * runs
    return {key: amount for key, amount in amounts.items() if amount}


def _cell(cells: dict[tuple[str, tuple[int, int]], list[Fraction]], axes: str, pair: tuple[int, int]) -> list[Fraction]:
    return cells.setdefault((axes, pair), [Fraction(0), Fraction(0)])
