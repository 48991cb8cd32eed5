"""Profiles of TPUs: the operations of each TensorCore and of its SparseCores, its steps, and its program executions.

Planes, lines and statistics are named in openxla/xla's `xla/tsl/profiler/utils/xplane_schema.cc`, the contents of each
line in openxla/xprof's `xprof/convert/events_db/tpu_trace_parser.cc`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.profile.platforms.tpu_meters import read_meters
from compare.profile.xplane.device_events import (
    EXECUTIONS,
    DeviceEvents,
    concat_frames,
    fill_words,
    frame,
    map_words,
    no_events,
    words_by_code,
)
from compare.profile.xplane.xspace import Line, Plane, Space
from compare.timeline.arrays import Ints, Times
from compare.timeline.columns import STEP_COLUMNS

_TENSOR_CORE = re.compile(r"/device:TPU:(\d+)$")
_SPARSE_CORE = re.compile(r"/device:TPU:(\d+) SparseCore\b.*$")
_MEGASCALE = re.compile(r"/device:CUSTOM:.*[Mm]egascale")

OPS, ASYNC, MODULES, MARKS, OTHER = "operations", "asynchronous operations", "programs", "steps", "other"
_LINES = {
    "xla ops": OPS,
    "sparse core ops": OPS,
    "xla async ops": ASYNC,
    "xla modules": MODULES,
    "sparse core modules": MODULES,
    "steps": MARKS,
    "step": MARKS,
    "sparse core steps": OTHER,
    # Derived from the others, counters, or marks by kernels: none of these is another operation.
    **dict.fromkeys(
        ("tc overlay", "sc overlay", "framework ops", "framework name scope", "tensorflow ops", "tensorflow name scope",
         "source code", "source", "host offload ops", "launch stats", "xla traceme", "scalar unit", "tensor core",
         "tensor core sync flag", "sparse core syncs", "_counters_", "power throttle"),
        OTHER,
    ),
}  # fmt: skip
_COUNTERS = re.compile(r"_?counters_\d*|tec \d+", re.IGNORECASE)
_LINE_IDS = {1: MARKS, 2: MODULES, 3: OPS, 66: MODULES, 67: OPS}
"""Of lines without a name (openxla/xprof's `xprof/convert/events_db/tpu_component.h`)."""
_HLO_NAME = re.compile(r"\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=\s")
_RATES = {
    "flops_per_s": ("peak_teraflops_per_second", 1e12),
    "memory_bytes_per_s": ("peak_hbm_bw_gigabytes_per_second", 1e9),
}
_STEP_NUMBER = re.compile(r"(\d+)\s*$")
_MOST_DIGITS = 18
"""Of the number of a step."""
_DROPPED = re.compile(r"trace buffers? dropped", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Core:
    """A TensorCore or a SparseCore."""

    plane: Plane
    device: int
    is_main: bool
    zero_ns: int

    def line_name(self, line: Line) -> str:
        """The line's name, prefixed with the core's on a SparseCore."""
        return line.name if self.is_main else f"{self.plane.name.partition(' ')[2]}: {line.name}"

    def lines(self, kind: str) -> list[Line]:
        return [line for line in self.plane.lines if _kind(line) == kind and len(line)]


def is_tpu(space: Space) -> bool:
    return any(_TENSOR_CORE.match(plane.name) for plane in space.planes)


def device_types(space: Space) -> set[str]:
    """The devices' own type names, like `TPU v5 lite`."""
    return {str(core.plane.stats.get("device_type_string", "")) for core in _cores(space)} - {""}


def device_rates(space: Space) -> dict[str, float]:
    """What one device can do, by the profile's own statistics of its plane: FLOP/s and bytes/s of its memory."""
    for core in _cores(space):
        read = {name: core.plane.stats.get(stat) for name, (stat, _) in _RATES.items()}
        known = {name: float(value) * _RATES[name][1] for name, value in read.items() if isinstance(value, int | float)}
        if rates := {name: rate for name, rate in known.items() if rate > 0}:
            return rates
    return {}


def op_events(space: Space) -> DeviceEvents:
    """The operations of this host's devices, with the host's device numbers."""
    cores = list(_cores(space))
    executions = {core.device: _executions(core) for core in cores if core.is_main}
    nothing = _no_executions()
    frames: list[pd.DataFrame] = []
    notes: list[str] = []
    for core in cores:
        device_executions = executions.get(core.device, nothing)
        for kind in (OPS, ASYNC):
            frames += [_operations(line, core, kind, device_executions) for line in core.lines(kind)]
        notes += _buffers_dropped(core)
    marks = [_steps(core) for core in cores if core.is_main and core.lines(MARKS)]
    step_frames = [rows for rows in marks if len(rows)]
    return DeviceEvents(
        events=concat_frames(frames) if frames else no_events(),
        steps=pd.concat(step_frames, ignore_index=True) if step_frames else None,
        executions=concat_frames([rows for rows in executions.values() if len(rows)] or [nothing]),
        spanning_lines=frozenset(core.line_name(line) for core in cores if core.is_main for line in core.lines(ASYNC)),
        other_cores=frozenset(core.line_name(line) for core in cores if not core.is_main for line in core.plane.lines),
        one_at_a_time=space.one_at_a_time,
        copies_compute=space.source == "modelled",
        meters=tuple(
            meter
            for core in cores
            if core.is_main
            for meter in read_meters(core.plane, device=core.device, zero_ns=core.zero_ns)
        ),
        notes=(*notes, *_other_planes(space)),
        skipped=_unknown_lines(cores),
    )


def _cores(space: Space) -> Iterator[_Core]:
    for plane in space.planes:
        if match := _TENSOR_CORE.match(plane.name):
            yield _Core(plane, int(match[1]), True, space.zero_of(plane))
        # `/device:TPU:1 SparseCore 0` and its tiles, `/device:TPU:1 SparseCore Tile 1`, work for TensorCore 1.
        elif match := _SPARSE_CORE.match(plane.name):
            yield _Core(plane, int(match[1]), False, space.zero_of(plane))


def _kind(line: Line) -> str | None:
    """The contents of a line; `None` where unknown."""
    name = line.name.strip().lower()
    if not name:
        return _LINE_IDS.get(line.id)
    if _COUNTERS.fullmatch(name):
        return OTHER
    return ASYNC if name.startswith("async xla ops") else _LINES.get(name)


def _operations(line: Line, core: _Core, kind: str, executions: pd.DataFrame) -> pd.DataFrame:
    names, shown = line.names, line.display_names
    starts = line.start_ns(core.zero_ns)
    hlo_op = fill_words(
        map_words(names, _hlo_name), lambda: map_words(fill_words(line.words("hlo_op"), lambda: shown), _bare)
    )
    module, run = _program_at(starts, executions, line)
    return frame(
        {
            "device": core.device,
            "line": core.line_name(line),
            "name": map_words(shown, lambda name: _hlo_name(name) or _bare(name)),
            "hlo_op": hlo_op,
            "module": module,
            "text": map_words(names, lambda name: name if _HLO_NAME.match(name) else ""),
            "category": line.words("hlo_category"),
            "source": line.words("source"),
            "source_stack": line.words("source_stack"),
            "tf_op": fill_words(line.words("tf_op"), lambda: line.words("tf_op_name")),
            "main": core.is_main and kind == OPS,
            "start_ns": starts,
            "duration_ns": line.duration_ns,
            "wait_ns": line.floats("wait_ps") / 1e3,
            "run": run,
            "flops": line.floats("model_flops"),
            "accessed_bytes": line.floats("bytes_accessed"),
            "shown_bytes": line.floats("shown_bytes"),
            "core_energy_j": line.floats("vdd_energy_j") if core.is_main and kind == OPS else np.nan,
        },
        length=len(starts),
    )


def _hlo_name(name: str) -> str:
    match = _HLO_NAME.match(name)
    return match[1] if match else ""


def _bare(name: str) -> str:
    """`%all-reduce.1` is the instruction `all-reduce.1`."""
    return name.removeprefix("%")


def _program_at(starts: Times, executions: pd.DataFrame, line: Line) -> tuple[pd.Categorical, Ints]:
    """(program, run) that the device executes when each operation begins; else the program of its `program_id`."""
    begins = executions["start_ns"].to_numpy(np.float64)
    ends = begins + executions["duration_ns"].to_numpy(np.float64)
    index = np.searchsorted(begins, starts, side="right") - 1
    early = (index < 0) | (starts >= np.append(ends, -np.inf)[index])
    # Clocks of different cores differ a little: an operation may seem to begin before its program.
    index = np.where(early, np.searchsorted(begins, starts + line.duration_ns, side="left") - 1, index)
    inside = (index >= 0) & (starts < np.append(ends, -np.inf)[index])
    modules = executions["module"].array
    words = [*modules.categories, ""]
    codes = np.where(inside, np.append(np.asarray(modules.codes, np.int64), -1)[index], len(words) - 1)
    program = words_by_code(codes, words)
    run = np.where(inside, np.append(executions["run"].to_numpy(np.int64), -1)[index], -1)
    return fill_words(program, lambda: _numbered(line.numbers("program_id", missing=-1))), run


def _numbered(programs: Ints) -> pd.Categorical:
    """Programs known only by number, like `(17)`."""
    codes, numbers = pd.factorize(programs)
    words = ["" if number == -1 else f"({int(number) % 2**64})" for number in numbers]
    return pd.Categorical.from_codes(codes, categories=pd.Index(words, dtype=object))


def _executions(core: _Core) -> pd.DataFrame:
    """The program executions of a device, in order of time; those without a `run_id` are numbered."""
    frames = []
    for line in core.lines(MODULES):
        starts, run = line.start_ns(core.zero_ns), line.numbers("run_id", missing=-1)
        rows = pd.DataFrame(
            {
                "device": core.device,
                "module": line.names,
                "run": np.where(run == -1, np.arange(len(starts)), run),
                "start_ns": starts,
                "duration_ns": line.duration_ns,
            }
        )
        frames.append(rows)
    return concat_frames(frames or [_no_executions()]).sort_values("start_ns", ignore_index=True)


def _no_executions() -> pd.DataFrame:
    empty = pd.Categorical.from_codes([], categories=pd.Index([], dtype=object))
    return pd.DataFrame({name: empty if name == "module" else np.empty(0, kind) for name, kind in EXECUTIONS.items()})


def _steps(core: _Core) -> pd.DataFrame:
    """The steps of a device, numbered as in their names; where those are not distinct, counted."""
    marks = [
        (start, duration, str(word))
        for line in core.lines(MARKS)
        for word, start, duration in zip(line.names, line.start_ns(core.zero_ns), line.duration_ns, strict=True)
        if duration > 0
    ]
    marks.sort(key=lambda mark: mark[0])
    numbers = [_STEP_NUMBER.search(word) for _, _, word in marks]
    # The device's marks are named by number, `4`, `5`; a name without one, or one that comes again, numbers nothing.
    named = {match[1] for match in numbers if match}
    counted = len(named) < len(marks) or any(len(number) > _MOST_DIGITS for number in named)
    rows = {
        "device": core.device,
        "step": range(len(marks)) if counted else [int(match[1]) for match in numbers if match],
        "start_ns": [start for start, _, _ in marks],
        "duration_ns": [duration for _, duration, _ in marks],
    }
    return pd.DataFrame(rows)[list(STEP_COLUMNS)].astype(STEP_COLUMNS)


def _unknown_lines(cores: Iterable[_Core]) -> dict[str, int]:
    """Line name -> number of events, for unknown lines."""
    counts: dict[str, int] = {}
    for core in cores:
        for line in core.plane.lines:
            if _kind(line) is None and len(line):
                name = f"line {line.name or line.id!r}"
                counts[name] = counts.get(name, 0) + len(line)
    return counts


def _buffers_dropped(core: _Core) -> Sequence[str]:
    """A note where the device reports an incomplete trace."""
    dropped = any(_DROPPED.search(name) for name in core.plane.metadata.names) or core.plane.stats.get("dropped_traces")
    return [f"{core.plane.name}: trace buffers were dropped; what is missing is not known"] if dropped else []


def _other_planes(space: Space) -> Sequence[str]:
    return [
        f"{plane.name}: not read; what crosses slices is seen by its send and receive alone"
        for plane in space.planes
        if _MEGASCALE.match(plane.name)
    ]
