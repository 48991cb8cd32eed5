"""Timelines written by hand: a line for each event, times in ns."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from itertools import pairwise

import pandas as pd

from compare.metrics import collectives, devices, pipeline, summary, verdicts
from compare.metrics.network import gaps, phases
from compare.report.model.codec import encode
from compare.timeline.columns import EVENT_COLUMNS, STEP_COLUMNS
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, Timeline, add_overlap
from tests.compare.report.records import collective

NAN = float("nan")


def as_json(timeline):
    """Records, by themselves or in lists and maps, as a report writes them."""
    if is_dataclass(timeline):
        return encode(timeline)
    if isinstance(timeline, Mapping):
        return {name: as_json(value) for name, value in timeline.items()}
    return [as_json(value) for value in timeline] if isinstance(timeline, list | tuple) else timeline


def _in_json(metric):
    return lambda *args, **options: as_json(metric(*args, **options))


by_verdict, imbalance = _in_json(verdicts.by_verdict), _in_json(devices.imbalance)
interval_rows, messages = _in_json(gaps.interval_rows), _in_json(collectives.messages)
network, pipeline_of = _in_json(phases.summarize_network), _in_json(pipeline.summarize_pipeline)
stragglers, trace_summary = _in_json(devices.stragglers), _in_json(summary.trace_summary)


def compute(start, end, device=0, name="fusion", role=COMPUTE):
    return {
        "device": device,
        "line": "XLA Ops",
        "name": name,
        "hlo_op": name,
        "role": role,
        "collective": "",
        "scope": "",
        "kind": "",
        "axes": "",
        "payload_bytes": NAN,
        "start_ns": start,
        "duration_ns": end - start,
        "wait_ns": NAN,
    }


def container(start, end, device=0, name="while"):
    return compute(start, end, device, name, CONTAINER)


def comm(
    start,
    end,
    device=0,
    name="all-reduce.1",
    kind="all-reduce",
    axes="tp",
    scope="layer.mlp.down",
    payload=1000,
    wait=NAN,
):
    return compute(start, end, device, name, COMMUNICATION) | {
        "collective": name,
        "scope": scope,
        "kind": kind,
        "axes": axes,
        "payload_bytes": payload,
        "wait_ns": wait,
    }


def steps(*edges, devices=(0,)):
    """One step from each edge to the next, on each device."""
    return [
        {"device": device, "step": number, "start_ns": start, "duration_ns": end - start}
        for device in devices
        for number, (start, end) in enumerate(pairwise(edges))
    ]


def timeline(events, marks, *, source="measured", stands_for=None, notes=(), unjoined_events=0):
    """The timeline of these events and steps."""
    given = pd.DataFrame(events, columns=list(EVENT_COLUMNS)).astype(EVENT_COLUMNS)
    marks = pd.DataFrame(marks, columns=list(STEP_COLUMNS)).astype(STEP_COLUMNS)
    shown = sorted({*given["device"], *marks["device"]})
    return Timeline(
        source=source,
        label=f"{source} by hand",
        events=add_overlap(given, marks),
        steps=marks,
        stands_for=stands_for or {device: (device,) for device in shown},
        notes=notes,
        unjoined_events=unjoined_events,
    )


def each(make, devices, *args, **kwargs):
    """The same event on several devices."""
    return [make(*args, device=device, **kwargs) for device in devices]


def row(name, kind, axes, payload, groups, *, executions=1, inherent=0, inflated=0, induced=0, causes=(), **more):
    """A row of a report's collectives, of which all that is sent was the verdict's."""
    known = {
        "name": name,
        "kind": kind,
        "axes": axes,
        "scope": "layer.mlp.down",
        "payload_bytes": payload,
        "groups": tuple(map(tuple, groups)),
        "executions": executions,
        "step_wire_bytes": inherent + inflated + induced,
        "inherent_bytes": inherent,
        "inflated_bytes": inflated,
        "induced_bytes": induced,
        "causes": dict(causes),
    }
    return collective(**known | more)
