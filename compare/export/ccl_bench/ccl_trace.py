"""A timeline as a Chrome trace, laid out as XLA's profiler lays out one of a TPU.

Each device is a process with the threads `Steps`, `XLA Modules`, `XLA Ops`, `Async XLA Ops`; `args` bear what the
profiler's do.  `device_offset_ps` and `device_duration_ps` are whole picoseconds; `ts` and `dur`, in µs, have all
digits.  Beside them `wait_ps` is the part of a communication in which its device waits for others.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import pandas as pd

from compare.hlo.collective import Collective
from compare.hlo.emission.hlo_category import category_of
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.module import Module
from compare.hlo.text.shapes import arrays
from compare.profile.chrome.space import OWN_KEY
from compare.timeline.timeline import COMMUNICATION, CONTAINER, UNKNOWN, Timeline

Args = dict[str, str | int]
TraceEvent = dict[str, object]

MOST_EVENTS = 1 << 20
"""Beyond them devices that do the same are shown once, and the trace says what each stands for."""
_LINES = ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")
_FIRST_PROCESS, _HOST_PROCESS = 3, 1
_BRACES = r'\{(?:[^{}"]|"[^"]*"|\{(?:[^{}"]|"[^"]*"|\{[^{}]*\})*\})*\}'
_HIDDEN = re.compile(rf", (?:metadata|backend_config|frontend_attributes|sharding|control-predecessors)={_BRACES}")
_LONGEST = 2000
"""Letters of a line of HLO: a loop's or a tuple's may have thousands of operands."""


@dataclass(frozen=True, slots=True)
class _Operations:
    """What the program says of each name that an event may bear."""

    module: Module
    rows: Mapping[str, Collective]
    """Collective -> its row."""
    instructions: Mapping[str, Instruction]

    @classmethod
    def of(cls, module: Module, rows: tuple[Collective, ...]) -> "_Operations":
        items = {item.name: item for computation in module.computations.values() for item in computation}
        return cls(module, {row.name: row for row in rows}, items)

    def args(self, name: str, collective: str) -> Args:
        """The `args` that every event of an instruction has."""
        item, row = self.instructions.get(name), self.rows.get(collective)
        facts: Args = {"hlo_op": name}
        if row is not None:
            size = max(map(len, row.groups), default=self.module.num_partitions)
            facts["hlo_category"] = _part(row.kind, name)
            facts["bytes_accessed"] = facts["raw_bytes_accessed"] = str(_exchanged_bytes(row, size))
            facts["shape_with_layout"] = self.instructions[row.name].shape_text
            facts["tf_op"] = self.instructions[row.name].op_name
        if item is None:
            return facts
        facts["long_name"] = _line(item)
        if row is None:
            facts["hlo_category"] = category_of(item)
            facts["tf_op"] = item.op_name
            facts["shape_with_layout"] = item.shape_text[:_LONGEST]
            if item.opcode not in ("while", "conditional", "call"):
                facts["bytes_accessed"] = facts["raw_bytes_accessed"] = str(_accessed_bytes(item))
        return facts


def _part(kind: str, name: str) -> str:
    """`all-reduce-done` of the end of one; else the kind."""
    return f"{kind}-done" if re.search(r"-done\b", name) else f"{kind}-start" if re.search(r"-start\b", name) else kind


def _exchanged_bytes(row: Collective, size: int) -> int:
    """Operands and results of a collective: the profiler counts both."""
    payload = row.payload_bytes
    if row.kind in ("all-gather", "reduce-scatter") and size:
        return payload + payload // size
    return 2 * payload


def _accessed_bytes(item: Instruction) -> int:
    parts = [array for operand in item.operands for array in arrays(operand.shape)] + arrays(item.shape)
    return sum(array.num_bytes for array in parts)


def _line(item: Instruction) -> str:
    """The line of HLO as a profile has it: operands with their shapes, and no metadata.

    Of one that is too long, as of a loop, what stands before the operands.
    """
    text = _HIDDEN.sub("", item.text.strip().removeprefix("ROOT "))
    text = text if text.startswith("%") else f"%{text}"
    begin, arguments = text.find(f" {item.opcode}("), item.arguments
    operands = ", ".join(f"{operand.shape_text} %{operand.name}" for operand in item.operands)
    whole = (
        text
        if begin < 0 or not item.operands
        else (text[: begin + len(item.opcode) + 2] + operands + text[begin + len(item.opcode) + 2 + len(arguments) :])
    )
    return whole if len(whole) <= _LONGEST else f"%{item.name} = {item.opcode}"


def write_trace(timeline: Timeline, module: Module, rows: tuple[Collective, ...], *, platform: str) -> bytes:
    """The trace as JSON.  platform: of the devices, `TPU` or `CPU`."""
    operations = _Operations.of(module, rows)
    shown = sorted(timeline.stands_for)
    several = (
        sum(
            len(timeline.events[timeline.events["device"].eq(device)]) * len(timeline.stands_for[device])
            for device in shown
        )
        <= MOST_EVENTS
    )
    about: dict[str, object] = {"source": timeline.source, "label": timeline.label}
    if not several:
        about["stands_for"] = {str(device): list(alike) for device, alike in timeline.stands_for.items()}
    devices = {alike: device for device in shown for alike in (timeline.stands_for[device] if several else (device,))}
    head = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True, OWN_KEY: about}}
    parts = [b",\n".join(map(msgspec.json.encode, _host(timeline)))]
    templates: dict[tuple[str, str], Args] = {}
    for device in sorted(devices):
        events = _device(timeline, devices[device], device, operations, templates, platform)
        parts.append(b",\n".join(map(msgspec.json.encode, events)))
    opening = msgspec.json.encode(head)[:-1] + b',"traceEvents":[\n'
    return opening + b",\n".join(part for part in parts if part) + b"\n]}\n"


def _host(timeline: Timeline) -> Iterator[TraceEvent]:
    """The host's marks of the steps, from the first device that begins each to the last that ends it."""
    yield _name("process_name", _HOST_PROCESS, None, "/host:CPU")
    yield _name("thread_name", _HOST_PROCESS, 1, "steps")
    marks = timeline.steps.assign(end=timeline.steps["start_ns"] + timeline.steps["duration_ns"])
    for step, row in marks.groupby("step").agg({"start_ns": "min", "end": "max"}).iterrows():
        start, end = float(row["start_ns"]), float(row["end"])
        yield {
            "ph": "X",
            "name": "StepMarker",
            "pid": _HOST_PROCESS,
            "tid": 1,
            "ts": start / 1e3,
            "dur": (end - start) / 1e3,
            "args": {"step_num": int(str(step))},
        }


def _device(
    timeline: Timeline,
    shown: int,
    device: int,
    operations: _Operations,
    templates: dict[tuple[str, str], Args],
    platform: str,
) -> Iterator[TraceEvent]:
    """One process: its name, its threads, its steps and executions of the program, its operations."""
    process = _FIRST_PROCESS + device
    yield _name("process_name", process, None, f"/device:{platform}:{device}")
    for thread, name in enumerate(_LINES, 1):
        yield _name("thread_name", process, thread, name)
    steps = timeline.steps[timeline.steps["device"].isin([shown, UNKNOWN])]
    for step, start, length in zip(
        steps["step"].tolist(), steps["start_ns"].tolist(), steps["duration_ns"].tolist(), strict=True
    ):
        yield _event(process, 1, str(step), start, length, {"step_num": str(step)})
        yield _event(process, 2, operations.module.name, start, length, {"run_id": str(step)})
    yield from _operations(timeline.events[timeline.events["device"].eq(shown)], process, device, operations, templates)


def _operations(
    events: pd.DataFrame, process: int, device: int, operations: _Operations, templates: dict[tuple[str, str], Args]
) -> Iterator[TraceEvent]:
    columns = ["line", "hlo_op", "collective", "role", "step", "start_ns", "duration_ns", "wait_ns"]
    for line, name, collective, role, step, start, length, wait in events[columns].itertuples(index=False, name=None):
        key = name, collective if role != CONTAINER else ""
        if key not in templates:
            templates[key] = operations.args(*key)
        args: Args = {**templates[key], "run_id": str(step)}
        if role == COMMUNICATION:
            args |= _group_id(operations.rows.get(collective), device)
            args |= {} if math.isnan(wait) else {"wait_ps": str(round(wait * 1000))}
        yield _event(process, 4 if line == _LINES[3] else 3, name, start, length, args)


def _group_id(row: Collective | None, device: int) -> Args:
    """One number for each group of an all-reduce, as the profiler has one for each that meets."""
    if row is None or row.kind != "all-reduce":
        return {}
    groups = [place for place, group in enumerate(row.groups) if device in group]
    return {"all_reduce_unique_id": str(row.line * 10_000 + groups[0])} if groups else {}


def _event(process: int, thread: int, name: str, start_ns: float, length_ns: float, args: Args) -> TraceEvent:
    begin = round(start_ns * 1000)
    times: Args = {"device_offset_ps": str(begin), "device_duration_ps": str(round(length_ns * 1000))}
    return {
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": start_ns / 1e3,
        "dur": length_ns / 1e3,
        "args": args | times,
    }


def _name(what: str, process: int, thread: int | None, name: str) -> TraceEvent:
    place = {"pid": process} if thread is None else {"pid": process, "tid": thread}
    return {"ph": "M", "name": what, **place, "args": {"name": name}}
