"""A played graph as a timeline like any other."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.network.engine.game import Played
from compare.network.graph.graph import COMPUTE
from compare.schedule.trace_writer import BESIDE_LINE, CORE_LINE
from compare.timeline.arrays import Floats, Ints
from compare.timeline.timeline import (
    COMMUNICATION,
    CONTAINER,
    EVENT_COLUMNS,
    STEP_COLUMNS,
    WORK_COLUMNS,
    Timeline,
    add_overlap,
)
from compare.timeline.timeline import COMPUTE as COMPUTES

CPU_LINE = "CPU"
"""Of work that is none of the device: in no sum."""


def show_timeline(
    played: Played, devices: Sequence[int], rows: Mapping[str, Collective], *, label: str, notes: Sequence[str] = ()
) -> Timeline:
    """Communication lasts from its start to the arrival of all data; a rank's send and receive of one permute are one
    event.  devices: the logical device of each of the first ranks, the only ones shown.  rows: collectives by name.

    Where the graph knows what its nodes compute, events have WORK_COLUMNS, those of networks 0: a machine has no slice.
    """
    shown = _merge_alike(played, np.array(devices, np.int64))
    frames = [_events(played, index, members[0], rows) for index, members in shown]
    firsts = np.array([members[0] for _, members in shown], np.int32)
    zero = np.zeros(firsts.size)
    steps = pd.DataFrame({"device": firsts, "step": 0, "start_ns": zero, "duration_ns": zero + played.total_ns})
    events = pd.concat(frames, ignore_index=True)
    for name in ("name", "hlo_op", "collective", "scope", "kind", "axes", "role"):
        events[name] = events[name].astype("category")
    events = events.astype({key: kind for key, kind in EVENT_COLUMNS.items() if kind != "category"})
    known = [] if events[list(WORK_COLUMNS)].isna().any(axis=None) else list(WORK_COLUMNS)
    events = add_overlap(events.assign(line=CORE_LINE)[[*EVENT_COLUMNS, *known]], steps.astype(STEP_COLUMNS))
    line = np.where(events["hidden_ns"] > 0, BESIDE_LINE, CORE_LINE)
    line[events["role"].eq(CONTAINER).to_numpy()] = CPU_LINE
    return Timeline(
        source="modelled",
        label=label,
        events=events.assign(line=pd.Categorical(line, categories=[CORE_LINE, BESIDE_LINE, CPU_LINE])),
        steps=steps.astype(STEP_COLUMNS),
        stands_for={members[0]: tuple(members) for _, members in shown},
        notes=tuple(notes),
    )


def _merge_alike(played: Played, devices: Ints) -> list[tuple[int, list[int]]]:
    """(class, logical devices in order) of classes with different times."""
    of = played.plan.classes.of[: devices.size]
    content: dict[tuple[object, ...], int] = {}
    merged: dict[int, list[int]] = {}
    for device, index in sorted(zip(devices.tolist(), of.tolist(), strict=True)):
        table = played.table(index)
        times = (played.starts[index].round(3), played.ends[index].round(3))
        key = (table.names, table.ops.tobytes(), table.work.tobytes(), *(each.tobytes() for each in times))
        merged.setdefault(content.setdefault(key, index), []).append(device)
    return list(merged.items())


def _events(played: Played, index: int, device: int, rows: Mapping[str, Collective]) -> pd.DataFrame:
    table = played.table(index)
    starts, joined, ends = played.starts[index], played.joined[index], played.ends[index]
    transfers = played.plan.graph.transfers
    kept, last, wait = _merge_ends(table.transfers, starts, joined, ends)
    of_kept = [None if number < 0 else transfers[number] for number in table.transfers[kept].tolist()]
    found = [None if each is None else rows.get(each.collective) for each in of_kept]
    computes, communicates = table.ops[kept] == COMPUTE, table.transfers[kept] >= 0
    names = [
        table.names[node] if each is None else each.collective or table.names[node]
        for node, each in zip(kept.tolist(), of_kept, strict=True)
    ]
    return pd.DataFrame({
        "device": device,
        "name": names,
        "hlo_op": names,
        "role": np.where(computes, COMPUTES, np.where(communicates, COMMUNICATION, CONTAINER)),
        "collective": ["" if each is None else each.collective for each in of_kept],
        "scope": ["" if each is None else row.scope if row else "?" for each, row in zip(of_kept, found, strict=True)],
        "kind": ["" if each is None else each.kind for each in of_kept],
        "axes": ["" if each is None else row.axes if row else "?" for each, row in zip(of_kept, found, strict=True)],
        "payload_bytes": [
            np.nan if each is None else float(row.payload_bytes if row else each.num_bytes)
            for each, row in zip(of_kept, found, strict=True)
        ],
        "start_ns": starts[kept],
        "duration_ns": last - starts[kept],
        "wait_ns": np.where(communicates, wait, np.nan),
        **dict.fromkeys(WORK_COLUMNS, 0.0),
        **dict(zip(WORK_COLUMNS, np.where(computes[:, None], table.work[kept], 0.0).T, strict=False)),
    })  # fmt: skip


def _merge_ends(transfers: Ints, starts: Floats, joined: Floats, ends: Floats) -> tuple[Ints, Floats, Floats]:
    """(first node of each transfer and every compute node, its end, its wait)."""
    key = np.where(transfers < 0, -1 - np.arange(transfers.size), transfers)
    _, kept, inverse = np.unique(key, return_index=True, return_inverse=True)
    last, wait = np.zeros(kept.size), np.zeros(kept.size)
    np.maximum.at(last, inverse, ends)
    np.maximum.at(wait, inverse, np.maximum(joined - starts, 0.0))
    order = np.argsort(kept)
    return kept[order], last[order], wait[order]
