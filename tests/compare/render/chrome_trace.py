"""A strict reader of Chrome's trace format: what a file must hold to so that every viewer shows it alike.

After "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): events of phase M,
X, C, s, t and f and their fields; slices of one thread nest; `cname` is one of the reserved names, which
catapult's tracing/base/color_scheme.html lists.  After perfetto.dev/docs/getting-started/other-formats: slices that
overlap are out of the format, and a flow's point belongs to the slice open at its time.
"""

import gzip
import json
from pathlib import Path
from typing import Any

FIELDS = {
    "M": {"ph", "name", "pid", "args"},
    "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur"},
    "C": {"ph", "name", "pid", "ts", "args"},
    **{phase: {"ph", "id", "name", "cat", "pid", "tid", "ts"} for phase in "stf"},
}
MORE = {"M": {"tid"}, "X": {"args", "cname"}, "f": {"bp"}}
METADATA = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}
COLOURS = {
    "thread_state_running",
    "generic_work",
    "good",
    "bad",
    "terrible",
    "black",
    "grey",
    "white",
    "yellow",
    "olive",
    "rail_response",
    "rail_animation",
    "rail_idle",
    "rail_load",
    "startup",
}

Event = dict[str, Any]


def read(path: Path) -> list[Event]:
    """All events of a file, each checked; fails on the first that is not in the format."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_constant=_refuse)
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert document["displayTimeUnit"] == "ms"
    events: list[Event] = document["traceEvents"]
    for event in events:
        _check(event)
    _check_names(events)
    _check_nesting(events)
    _check_flows(events)
    return events


def slices(events: list[Event]) -> list[Event]:
    return [event for event in events if event["ph"] == "X"]


def threads(events: list[Event]) -> dict[tuple[int, int], str]:
    """Process and thread -> the thread's name."""
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}


def processes(events: list[Event]) -> dict[int, str]:
    return {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def _check(event: Event) -> None:
    phase = event["ph"]
    assert FIELDS[phase] <= set(event) <= FIELDS[phase] | MORE.get(phase, set()), event
    assert all(isinstance(event[name], int) and event[name] > 0 for name in ("pid", "tid", "id") if name in event)
    assert all(isinstance(event[name], int | float) and event[name] >= 0 for name in ("ts", "dur") if name in event)
    assert isinstance(event["name"], str)
    assert event.get("cname", "good") in COLOURS
    assert event.get("bp", "e") == "e"
    if phase == "M":
        assert list(event["args"]) == [METADATA[event["name"]]]
        assert ("tid" in event) == event["name"].startswith("thread_")
    if phase == "C":
        assert event["args"]
        assert all(isinstance(value, int | float) and value >= 0 for value in event["args"].values())


def _check_names(events: list[Event]) -> None:
    """Every process and thread has one name, no thread is in two processes or bears a process's number."""
    used = {(event["pid"], event["tid"]) for event in events if "tid" in event}
    assert set(threads(events)) == used
    assert set(processes(events)) == {event["pid"] for event in events}
    assert len({tid for _, tid in used}) == len(used)
    assert not {tid for _, tid in used} & set(processes(events))


def _ns(event: Event) -> tuple[int, int]:
    start, length = round(event["ts"] * 1000), round(event.get("dur", 0) * 1000)
    return start, start + length


def _check_nesting(events: list[Event]) -> None:
    open_ends: dict[int, list[int]] = {}
    for event in sorted(slices(events), key=lambda entry: entry["ts"]):  # stable: as trace processors sort them
        start, end = _ns(event)
        stack = open_ends.setdefault(event["tid"], [])
        while stack and stack[-1] <= start:
            stack.pop()
        assert not stack or end <= stack[-1], f"overlaps another slice of its thread: {event}"
        stack.append(end)


def _check_flows(events: list[Event]) -> None:
    """Each has a start and an end, goes forward in time, and holds on to a slice at every point."""
    flows: dict[int, list[Event]] = {}
    for event in events:
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event)
    spans: dict[int, list[tuple[int, int]]] = {}
    for event in slices(events) if flows else ():
        spans.setdefault(event["tid"], []).append(_ns(event))
    for points in flows.values():
        marks = "".join(point["ph"] for point in points)
        assert marks in ("sf", "stf"), marks
        times = [_ns(point)[0] for point in points]
        assert times == sorted(times)
        for point, time in zip(points, times, strict=True):
            assert any(start <= time < end for start, end in spans[point["tid"]]), point
