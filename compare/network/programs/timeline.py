"""A simulated graph as a timeline like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.network.engine.graph_simulator import SimulatedGraph
from compare.network.graph.graph import COMPUTE, Transfer
from compare.timeline.arrays import Floats, Ints
from compare.timeline.modelled import BESIDE_LINE, CORE_LINE, CPU_LINE, Events, Label, make_timeline
from compare.timeline.timeline import COMMUNICATION, CONTAINER, Timeline
from compare.timeline.timeline import COMPUTE as COMPUTES


def show_timeline(
    simulated: SimulatedGraph,
    devices: Sequence[int],
    rows: Mapping[str, Collective],
    *,
    label: str,
    notes: Sequence[str] = (),
) -> Timeline:
    """Communication lasts from its start to the arrival of all data; a rank's send and receive of one permute are one
    event.  devices: the logical device of each of the first ranks, the only ones shown.  rows: collectives by name.

    Where the graph knows what its nodes compute, events have WORK_COLUMNS, those of networks 0: a machine has no slice.
    """
    labels: dict[Label, int] = {}
    shown = [
        (tuple(members), _list_events(simulated, index, rows, labels))
        for index, members in _merge_alike(simulated, np.array(devices, np.int64))
    ]
    timeline = make_timeline(shown, list(labels), end_ns=simulated.total_ns, name=label, notes=notes)
    events = timeline.events
    # Tables list words in the order of their categories.
    words = {name: events[name].cat for name in ("name", "hlo_op", "collective", "scope", "kind", "axes", "role")}
    in_order = {name: each.reorder_categories(sorted(each.categories)) for name, each in words.items()}
    line = events["line"].astype(object).mask(events["hidden_ns"] > 0, BESIDE_LINE)
    line_words = pd.Categorical(line, categories=[CORE_LINE, BESIDE_LINE, CPU_LINE])
    return replace(timeline, events=events.assign(**in_order, line=line_words))


def _merge_alike(simulated: SimulatedGraph, devices: Ints) -> list[tuple[int, list[int]]]:
    """(class, logical devices in order) of classes with different times."""
    of = simulated.plan.classes.of[: devices.size]
    content: dict[tuple[object, ...], int] = {}
    merged: dict[int, list[int]] = {}
    for device, index in sorted(zip(devices.tolist(), of.tolist(), strict=True)):
        table = simulated.table(index)
        times = (simulated.starts[index].round(3), simulated.ends[index].round(3))
        key = (table.names, table.ops.tobytes(), table.work.tobytes(), *(each.tobytes() for each in times))
        merged.setdefault(content.setdefault(key, index), []).append(device)
    return list(merged.items())


def _list_events(
    simulated: SimulatedGraph, index: int, rows: Mapping[str, Collective], labels: dict[Label, int]
) -> Events:
    """Those of a class; adds to the labels."""
    table, starts = simulated.table(index), simulated.starts[index]
    kept, last, wait = _merge_ends(table.transfers, starts, simulated.joined[index], simulated.ends[index])
    computes, communicates = table.ops[kept] == COMPUTE, table.transfers[kept] >= 0
    label = []
    for node, number, is_compute in zip(kept.tolist(), table.transfers[kept].tolist(), computes.tolist(), strict=True):
        if number >= 0:
            each = _describe(table.names[node], simulated.plan.graph.transfers[number], rows)
        else:
            each = Label(table.names[node], COMPUTES) if is_compute else Label(table.names[node], CONTAINER, CPU_LINE)
        label.append(labels.setdefault(each, len(labels)))
    work = np.pad(np.where(computes[:, None], table.work[kept], 0.0), ((0, 0), (0, 2)))
    waiting = np.where(communicates, wait, np.nan)
    return Events(np.array(label, np.int64), starts[kept], last - starts[kept], waiting, work)


def _describe(name: str, transfer: Transfer, rows: Mapping[str, Collective]) -> Label:
    row, name = rows.get(transfer.collective), transfer.collective or name
    if row is not None:
        return replace(Label.of(name, COMMUNICATION, row), kind=transfer.kind)
    return Label(
        name,
        COMMUNICATION,
        collective=transfer.collective,
        scope="?",
        kind=transfer.kind,
        axes="?",
        payload_bytes=transfer.num_bytes,
    )


def _merge_ends(transfers: Ints, starts: Floats, joined: Floats, ends: Floats) -> tuple[Ints, Floats, Floats]:
    """(first node of each transfer and every compute node, its end, its wait)."""
    key = np.where(transfers < 0, -1 - np.arange(transfers.size), transfers)
    _, kept, inverse = np.unique(key, return_index=True, return_inverse=True)
    last, wait = np.zeros(kept.size), np.zeros(kept.size)
    np.maximum.at(last, inverse, ends)
    np.maximum.at(wait, inverse, np.maximum(joined - starts, 0.0))
    order = np.argsort(kept)
    return kept[order], last[order], wait[order]
