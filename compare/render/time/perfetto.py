"""`timeline.perfetto.json.gz`: timelines in Chrome's trace format, which ui.perfetto.dev and chrome://tracing open.

A program is a process; each of its devices has a thread for what it computes and one for its communication, more where
several overlap, since the slices of one thread must nest.  Perfetto colours a slice by its name and ignores `cname`
(google/perfetto issues 208 and 620), which chrome://tracing heeds; so each communication lies in a slice named by its
verdict.

Format: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; what Perfetto
reads of it: perfetto.dev/docs/getting-started/other-formats.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd

from compare.render.time.timeline_view import NO_SHARE, TimedProgram, assign_lanes, middle_step, shares_by_name
from compare.render.units import axes_text
from compare.timing.timeline import COMMUNICATION, PART, UNKNOWN

CNAMES = {"inherent": "rail_response", "inflated": "yellow", "induced": "terrible", "unknown": "grey"}
"""Colours of chrome://tracing, those that come nearest to the figures'."""

_WORDS = ("collective", "hlo_op", "name", "line", "kind", "axes", "scope")
_NUMBERS = ("step", "payload_bytes", "exposed_ns", "hidden_ns", "wait_ns")
"""What a communication's slice tells of it, where it is known."""

_FIRST_THREAD = 1001
"""Threads of all processes are numbered on from here: no number means two of them, or a process."""


MOST_EVENTS = 60_000
"""Of one program: of a profile that has more, the step of the middle length is written."""


def write_trace(path: Path, *, timelines: Sequence[TimedProgram]) -> None:
    """Write all of them into one file; the same bytes from the same timelines.

    Times are µs from each timeline's own zero, whole ns.  Of a program with more than MOST_EVENTS one step is written,
    and its name says which.
    """
    timelines = [_fitting(one) for one in timelines]
    writer = _Writer(threads=count(_FIRST_THREAD), flows=count(1))
    with path.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        out = TextIOWrapper(packed, encoding="utf-8", newline="\n")
        # Not "ns": some readers take that for the unit of `ts`, which is µs whatever is displayed.
        out.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        between = ""
        for pid, timed in enumerate(timelines, start=1):
            for line in writer.process(pid, timed):
                out.write(between + line)
                between = ",\n"
        told = {one.name: _about(one) for one in timelines}
        out.write(f'\n],"otherData":{_json({"producer": "wirediff", **told})}}}\n')
        out.flush()
        out.detach()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Hands out the numbers that must differ all over a file."""

    threads: Iterator[int]
    flows: Iterator[int]

    def process(self, pid: int, timed: TimedProgram) -> Iterator[str]:
        """Every event of one program, a line of JSON each."""
        found = timed.timeline
        yield _meta("process_name", pid, name=f"{timed.name}, {timed.label}")
        yield _meta("process_labels", pid, labels=found.source)
        yield _meta("process_sort_index", pid, sort_index=pid)
        yield from self._steps(pid, timed)
        yield from _in_flight(pid, timed)
        for key, events in found.events.groupby("device", sort=True):
            device = _device(int(str(key)))
            talks = events["role"].eq(COMMUNICATION)
            work, talk = self._laid(events[~talks], nest=True), self._laid(events[talks], nest=False)
            yield from _threads(pid, work, f"{device} compute")
            yield from _threads(pid, talk, f"{device} communication")
            columns = (work[name] for name in ("tid", "start", "end", "name", "role"))
            yield from (_slice(pid, *values) for values in zip(*columns, strict=True))
            yield from _talk(pid, talk, timed)
            yield from self._flows(pid, talk, work[work["role"].eq(PART)])

    def _laid(self, events: pd.DataFrame, *, nest: bool) -> pd.DataFrame:
        """The events in order, with `start` and `end` in whole ns and the `tid` of a thread on which they fit."""
        laid = _whole(events)
        rows = assign_lanes(laid["start"].tolist(), laid["end"].tolist(), nest=nest)
        threads = {lane: next(self.threads) for lane in range(max(rows, default=-1) + 1)}
        return laid.assign(tid=[threads[lane] for lane in rows])

    def _steps(self, pid: int, timed: TimedProgram) -> Iterator[str]:
        """The steps of the first device that has any, on a thread of their own."""
        steps = timed.timeline.steps
        if steps.empty:
            return
        device = steps["device"].min()
        laid = self._laid(steps[steps["device"] == device], nest=True)
        yield from _threads(pid, laid, "steps" if device == UNKNOWN else f"{_device(int(device))} steps")
        for tid, step, start, end in zip(*(laid[name] for name in ("tid", "step", "start", "end")), strict=True):
            yield _slice(pid, tid, start, end, f"{timed.phase} step {step}", "step")

    def _flows(self, pid: int, talk: pd.DataFrame, parts: pd.DataFrame) -> Iterator[str]:
        """Arrows from where an asynchronous communication was started, through it, to where it was waited for."""
        parts = parts[parts["end"] > parts["start"]]  # an arrow needs a slice to hold on to
        for collective, own in parts.groupby("collective", observed=True, sort=True):
            whole = talk[talk["collective"].eq(collective) & (talk["end"] > talk["start"])]
            at = np.searchsorted(whole["start"], own["start"], side="right") - 1
            inside = (at >= 0) & (own["start"] <= np.append(whole["end"].to_numpy(), -1)[at])
            stops, middles = _stops(own[inside]), _stops(whole)
            numbers, firsts = np.unique(at[inside], return_index=True)
            lasts = np.append(firsts, len(stops))[1:] - 1
            for number, first, last in zip(numbers, firsts, lasts, strict=True):
                way = [stops[first], middles[number], stops[last]] if first != last else [middles[number], stops[last]]
                flow, marks = next(self.flows), ("s", *"t" * (len(way) - 2), "f")
                for mark, (tid, time) in zip(marks, way, strict=True):
                    yield _arrow(mark, pid, tid, time, str(collective), flow)


def _stops(laid: pd.DataFrame) -> list[tuple[int, int]]:
    return list(zip(laid["tid"].tolist(), laid["start"].tolist(), strict=True))


def _fitting(timed: TimedProgram) -> TimedProgram:
    """The same, or its step of the middle length."""
    found = timed.timeline
    number, _, _ = middle_step(found) if len(found.events) > MOST_EVENTS else (None, 0.0, 0.0)
    if number is None:
        return timed
    label = f"step {number} of {found.num_steps}, {timed.label}"
    events, steps = (table[table["step"].eq(number)] for table in (found.events, found.steps))
    return replace(timed, timeline=replace(found, label=label, events=events, steps=steps))


def _about(timed: TimedProgram) -> str:
    alike = [f"device {device} stands for {', '.join(map(str, others))}"
             for device, others in sorted(timed.timeline.stands_for.items()) if len(others) > 1]  # fmt: skip
    return "; ".join([timed.label, *alike])


def _device(device: int) -> str:
    return "unknown device" if device == UNKNOWN else f"device {device}"


def _whole(events: pd.DataFrame) -> pd.DataFrame:
    """By start, the longer first, with `start` and `end` in whole ns."""
    starts = np.rint(events["start_ns"].to_numpy(np.float64)).astype(np.int64)
    ends = np.rint((events["start_ns"] + events["duration_ns"]).to_numpy(np.float64)).astype(np.int64)
    order = np.lexsort((-ends, starts))
    return events.iloc[order].assign(start=starts[order], end=ends[order])


def _threads(pid: int, laid: pd.DataFrame, name: str) -> Iterator[str]:
    for number, tid in enumerate(sorted(laid["tid"].unique()), start=1):
        yield _meta("thread_name", pid, int(tid), name=f"{name} {number}" if number > 1 else name)
        yield _meta("thread_sort_index", pid, int(tid), sort_index=int(tid))


def _in_flight(pid: int, timed: TimedProgram) -> Iterator[str]:
    """For each axes string, the payload of all communications that are under way on all devices."""
    events = timed.timeline.events
    talk = events[events["role"].eq(COMMUNICATION) & events["payload_bytes"].gt(0)]
    stands = {device: len(others) for device, others in timed.timeline.stands_for.items()}
    for axes, own in talk.groupby("axes", observed=True, sort=True):
        laid = _whole(own)
        amounts = (own["payload_bytes"] * own["device"].map(stands).fillna(1)).loc[laid.index].to_numpy(np.float64)
        times, at = np.unique(np.concatenate((laid["start"], laid["end"])), return_inverse=True)
        changes = np.zeros(times.size)
        np.add.at(changes, at, np.concatenate((amounts, -amounts)))
        name = _json(f"in flight {axes_text(str(axes))}")
        for time, amount in zip(times.tolist(), np.rint(np.cumsum(changes)).astype(np.int64).tolist(), strict=True):
            yield f'{{"ph":"C","pid":{pid},"ts":{_us(time)},"name":{name},"args":{{"bytes":{amount}}}}}'


def _talk(pid: int, laid: pd.DataFrame, timed: TimedProgram) -> Iterator[str]:
    """Each communication: a slice named by its verdict, and in it what it is, with its numbers."""
    shares = shares_by_name(timed.shares)
    columns = [laid[name].tolist() for name in (*_WORDS, *_NUMBERS)]
    for tid, start, end, *values in zip(laid["tid"], laid["start"], laid["end"], *columns, strict=True):
        row = dict(zip((*_WORDS, *_NUMBERS), values, strict=True))
        share = shares.get(row["collective"], NO_SHARE)
        colour = f',"cname":"{CNAMES[share.verdict]}"'
        yield _slice(pid, tid, start, end, share.verdict, "verdict", colour)
        known = {name: row[name] for name in _WORDS if row[name]}
        known |= {name: round(row[name]) for name in _NUMBERS if row[name] == row[name]}  # NaN is not itself
        title = f"{row['kind'] or 'communication'} {axes_text(row['axes'])}"
        title += f" in {row['scope']}" if row["scope"] else ""
        told = _json({"verdict": share.verdict, "bytes_by_verdict": share.words, **known})
        yield _slice(pid, tid, start, end, title, share.verdict, f'{colour},"args":{told}')


def _arrow(mark: str, pid: int, tid: int, time: int, name: str, flow: int) -> str:
    """A point of an arrow, at the slice that is open there; `f`, the last, would else take the next one."""
    more = ',"bp":"e"' if mark == "f" else ""
    place = f'"pid":{pid},"tid":{tid},"ts":{_us(time)}'
    return f'{{"ph":"{mark}","id":{flow},{place},"name":{_json(name)},"cat":"async"{more}}}'


def _slice(pid: int, tid: int, start: int, end: int, name: str, category: str, more: str = "") -> str:
    place = f'"pid":{pid},"tid":{tid},"ts":{_us(start)},"dur":{_us(end - start)}'
    return f'{{"ph":"X",{place},"name":{_json(name)},"cat":"{category}"{more}}}'


def _meta(what: str, pid: int, tid: int | None = None, **told: object) -> str:
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return _json({"ph": "M", "name": what, **place, "args": told})


def _us(time: int) -> str:
    """Whole ns as µs, exactly."""
    sign = "-" if time < 0 else ""
    return f"{sign}{abs(time) // 1000}.{abs(time) % 1000:03d}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
