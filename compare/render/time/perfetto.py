"""`timeline.perfetto.json.gz`: timelines in Chrome's trace format, for ui.perfetto.dev and chrome://tracing.

A program is a process; each of its devices has a thread for compute and one for communication, more where events
overlap, since the slices of one thread must nest.  Perfetto colours a slice by its name and ignores `cname`
(google/perfetto issues 208 and 620), which chrome://tracing uses; so each communication is inside a slice named by its
verdict.

Format: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; what Perfetto
reads of it: perfetto.dev/docs/getting-started/other-formats.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import TextIOWrapper
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd

from compare.render.palette import TRACE_NAMES
from compare.render.time.timeline_view import NO_SHARE, ProgramTimeline, assign_lanes, middle_step, shares_by_name
from compare.render.units import axes_text
from compare.timeline.timeline import COMMUNICATION, PART, UNKNOWN

_WORDS = ("collective", "hlo_op", "name", "line", "kind", "axes", "scope")
_NUMBERS = ("step", "payload_bytes", "exposed_ns", "hidden_ns", "wait_ns")
"""Arguments of a communication's slice, where known."""

_FIRST_THREAD = 1001
"""First thread id: ids are unique over all processes and differ from process ids."""


MOST_EVENTS = 60_000
"""Most events of one program; of a larger profile only the step of median length is written."""


def write_trace(path: Path, *, timelines: Sequence[ProgramTimeline]) -> None:
    """Write all timelines into one file, reproducible byte for byte.

    Times are µs from each timeline's zero, rounded to ns.  Of a program with more than MOST_EVENTS events one step is
    written, and its name says which.
    """
    timelines = [_limit_events(program) for program in timelines]
    writer = _Writer(threads=count(_FIRST_THREAD), flows=count(1))
    with path.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        out = TextIOWrapper(packed, encoding="utf-8", newline="\n")
        # Not "ns": some readers take that for the unit of `ts`, which is always µs.
        out.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        between = ""
        for pid, program in enumerate(timelines, start=1):
            for line in writer.process(pid, program):
                out.write(between + line)
                between = ",\n"
        descriptions = {program.name: _describe(program) for program in timelines}
        out.write(f'\n],"otherData":{_json({"producer": "wirediff", **descriptions})}}}\n')
        out.flush()
        out.detach()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Generates the ids that are unique in a file."""

    threads: Iterator[int]
    flows: Iterator[int]

    def process(self, pid: int, program: ProgramTimeline) -> Iterator[str]:
        """The events of one program, one line of JSON each."""
        timeline = program.timeline
        yield _metadata("process_name", pid, name=f"{program.name}, {program.label}")
        yield _metadata("process_labels", pid, labels=timeline.source)
        yield _metadata("process_sort_index", pid, sort_index=pid)
        yield from self._steps(pid, program)
        yield from _in_flight(pid, program)
        yield from _power(pid, program)
        for key, events in timeline.events.groupby("device", sort=True):
            device = _device(int(str(key)))
            is_communication = events["role"].eq(COMMUNICATION)
            work, comms = (
                self._assign_threads(events[~is_communication], nest=True),
                self._assign_threads(events[is_communication], nest=False),
            )
            yield from _threads(pid, work, f"{device} compute")
            yield from _threads(pid, comms, f"{device} communication")
            columns = (work[name] for name in ("tid", "start", "end", "name", "role"))
            yield from (_slice(pid, *values) for values in zip(*columns, strict=True))
            yield from _communication_slices(pid, comms, program)
            yield from self._flows(pid, comms, work[work["role"].eq(PART)])

    def _assign_threads(self, events: pd.DataFrame, *, nest: bool) -> pd.DataFrame:
        """The events in order, with `start` and `end` in integer ns, and `tid`: a thread on which they nest."""
        laid = _round_to_ns(events)
        rows = assign_lanes(laid["start"].tolist(), laid["end"].tolist(), nest=nest)
        threads = {lane: next(self.threads) for lane in range(max(rows, default=-1) + 1)}
        return laid.assign(tid=[threads[lane] for lane in rows])

    def _steps(self, pid: int, program: ProgramTimeline) -> Iterator[str]:
        """The steps of the first device with steps, on their own thread."""
        steps = program.timeline.steps
        if steps.empty:
            return
        device = steps["device"].min()
        laid = self._assign_threads(steps[steps["device"] == device], nest=True)
        yield from _threads(pid, laid, "steps" if device == UNKNOWN else f"{_device(int(device))} steps")
        for tid, step, start, end in zip(*(laid[name] for name in ("tid", "step", "start", "end")), strict=True):
            yield _slice(pid, tid, start, end, f"{program.phase} step {step}", "step")

    def _flows(self, pid: int, comms: pd.DataFrame, parts: pd.DataFrame) -> Iterator[str]:
        """Arrows from the start of an asynchronous communication, through it, to its done."""
        parts = parts[parts["end"] > parts["start"]]  # an arrow needs a slice at its end
        for collective, ends in parts.groupby("collective", observed=True, sort=True):
            comms_of_collective = comms[comms["collective"].eq(collective) & (comms["end"] > comms["start"])]
            index = np.searchsorted(comms_of_collective["start"], ends["start"], side="right") - 1
            inside = (index >= 0) & (ends["start"] <= np.append(comms_of_collective["end"].to_numpy(), -1)[index])
            stops, middles = _stops(ends[inside]), _stops(comms_of_collective)
            numbers, firsts = np.unique(index[inside], return_index=True)
            lasts = np.append(firsts, len(stops))[1:] - 1
            for comm, first, last in zip(numbers, firsts, lasts, strict=True):
                way = [stops[first], middles[comm], stops[last]] if first != last else [middles[comm], stops[last]]
                flow, marks = next(self.flows), ("s", *"t" * (len(way) - 2), "f")
                for mark, (tid, time) in zip(marks, way, strict=True):
                    yield _arrow(mark, pid, tid, time, str(collective), flow)


def _stops(laid: pd.DataFrame) -> list[tuple[int, int]]:
    return list(zip(laid["tid"].tolist(), laid["start"].tolist(), strict=True))


def _limit_events(program: ProgramTimeline) -> ProgramTimeline:
    """The program, or only its step of median length if it has too many events."""
    timeline = program.timeline
    step, _, _ = middle_step(timeline) if len(timeline.events) > MOST_EVENTS else (None, 0.0, 0.0)
    if step is None:
        return program
    label = f"step {step} of {timeline.num_steps}, {program.label}"
    events, steps = (table[table["step"].eq(step)] for table in (timeline.events, timeline.steps))
    return replace(program, timeline=replace(timeline, label=label, events=events, steps=steps))


def _describe(program: ProgramTimeline) -> str:
    alike = [
        f"device {device} stands for {', '.join(map(str, others))}"
        for device, others in sorted(program.timeline.stands_for.items())
        if len(others) > 1
    ]
    return "; ".join([program.label, *alike])


def _device(device: int) -> str:
    return "unknown device" if device == UNKNOWN else f"device {device}"


def _round_to_ns(events: pd.DataFrame) -> pd.DataFrame:
    """Sorted by start, longer first, with `start` and `end` in integer ns."""
    starts = np.rint(events["start_ns"].to_numpy(np.float64)).astype(np.int64)
    ends = np.rint((events["start_ns"] + events["duration_ns"]).to_numpy(np.float64)).astype(np.int64)
    order = np.lexsort((-ends, starts))
    return events.iloc[order].assign(start=starts[order], end=ends[order])


def _threads(pid: int, laid: pd.DataFrame, name: str) -> Iterator[str]:
    for index, tid in enumerate(sorted(laid["tid"].unique()), start=1):
        yield _metadata("thread_name", pid, int(tid), name=f"{name} {index}" if index > 1 else name)
        yield _metadata("thread_sort_index", pid, int(tid), sort_index=int(tid))


def _in_flight(pid: int, program: ProgramTimeline) -> Iterator[str]:
    """Counters: for each axes, the payload of all communications in flight on all devices."""
    events = program.timeline.events
    all_comms = events[events["role"].eq(COMMUNICATION) & events["payload_bytes"].gt(0)]
    num_represented = {device: len(others) for device, others in program.timeline.stands_for.items()}
    for axes, comms in all_comms.groupby("axes", observed=True, sort=True):
        laid = _round_to_ns(comms)
        amounts = (
            (comms["payload_bytes"] * comms["device"].map(num_represented).fillna(1))
            .loc[laid.index]
            .to_numpy(np.float64)
        )
        times, index = np.unique(np.concatenate((laid["start"], laid["end"])), return_inverse=True)
        changes = np.zeros(times.size)
        np.add.at(changes, index, np.concatenate((amounts, -amounts)))
        name = _json(f"in flight {axes_text(str(axes))}")
        for time, amount in zip(times.tolist(), np.rint(np.cumsum(changes)).astype(np.int64).tolist(), strict=True):
            yield f'{{"ph":"C","pid":{pid},"ts":{_us(time)},"name":{name},"args":{{"bytes":{amount}}}}}'


def _power(pid: int, program: ProgramTimeline) -> Iterator[str]:
    """A counter: the modelled power of all chips, the mean of each window; 0 after the step."""
    energy, steps = program.energy, program.timeline.steps
    if energy is None or steps.empty:
        return
    begin, end = steps["start_ns"].min(), (steps["start_ns"] + steps["duration_ns"]).max()
    times = [min(begin + index * energy.window_ns, end) for index in range(len(energy.power_w))]
    for time, watts in zip([*times, end], [*energy.power_w, 0], strict=True):
        yield f'{{"ph":"C","pid":{pid},"ts":{_us(round(time))},"name":"power, modelled","args":{{"W":{watts:g}}}}}'


def _communication_slices(pid: int, laid: pd.DataFrame, program: ProgramTimeline) -> Iterator[str]:
    """Each communication as a slice named by its verdict, which contains a slice with its description."""
    shares = shares_by_name(program.shares)
    columns = [laid[name].tolist() for name in (*_WORDS, *_NUMBERS)]
    for tid, start, end, *values in zip(laid["tid"], laid["start"], laid["end"], *columns, strict=True):
        row = dict(zip((*_WORDS, *_NUMBERS), values, strict=True))
        share = shares.get(row["collective"], NO_SHARE)
        colour = f',"cname":"{TRACE_NAMES[share.verdict]}"'
        yield _slice(pid, tid, start, end, share.verdict, "verdict", colour)
        known = {name: row[name] for name in _WORDS if row[name]}
        known |= {name: round(row[name]) for name in _NUMBERS if row[name] == row[name]}  # NaN is not itself
        title = f"{row['kind'] or 'communication'} {axes_text(row['axes'])}"
        title += f" in {row['scope']}" if row["scope"] else ""
        arguments = _json({"verdict": share.verdict, "bytes_by_verdict": share.words, **known})
        yield _slice(pid, tid, start, end, title, share.verdict, f'{colour},"args":{arguments}')


def _arrow(mark: str, pid: int, tid: int, time: int, name: str, flow: int) -> str:
    """A point of an arrow, bound to the enclosing slice (`f`, the last, needs `bp` for that)."""
    more = ',"bp":"e"' if mark == "f" else ""
    position = f'"pid":{pid},"tid":{tid},"ts":{_us(time)}'
    return f'{{"ph":"{mark}","id":{flow},{position},"name":{_word(name)},"cat":"async"{more}}}'


def _slice(pid: int, tid: int, start: int, end: int, name: str, category: str, more: str = "") -> str:
    position = f'"pid":{pid},"tid":{tid},"ts":{_us(start)},"dur":{_us(end - start)}'
    return f'{{"ph":"X",{position},"name":{_word(name)},"cat":"{category}"{more}}}'


def _metadata(what: str, pid: int, tid: int | None = None, **arguments: object) -> str:
    position = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return _json({"ph": "M", "name": what, **position, "args": arguments})


def _us(time: int) -> str:
    """Integer ns as µs, exactly."""
    sign = "-" if time < 0 else ""
    return f"{sign}{abs(time) // 1000}.{abs(time) % 1000:03d}"


@lru_cache(maxsize=1 << 12)
def _word(name: str) -> str:
    """A name as JSON: a trace says each thousands of times."""
    return _json(name)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
