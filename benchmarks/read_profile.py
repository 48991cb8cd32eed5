"""`python -m benchmarks.read_profile [PROFILE]`: a profile of a million events into a timeline, against xprof's own.

Two files are made, one of the layout of a TPU's and one as JAX writes a CPU's; and of the first the Chrome trace that a
profiler makes of it, plain and gzipped, which is read beside it.  Each is read by
`compare.profile.join.profile` and converted by xprof for its
trace viewer (`trace_viewer@`, with none of its cache files there), in turn, each in a
process of its own; medians are compared, imports left out.

Of a profile that is given, all that `compare.trace` prints is timed instead, beyond what the command takes for a
profile of one operation, which is its start.  Python may keep what it compiles of our modules, as it has what pip
compiled of xprof's: the first turn is not counted.
"""

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

from tests.compare.timeline.spaces import Ref, Space

EVENTS = 1_000_000
ROUNDS = 3
DEVICES, OPERATIONS = 8, 2500
AXES = {"dp": 2, "tp": 4}

OURS = """
import json, resource, sys, time
from compare.profile.join.profile import read_profile
begun = time.perf_counter()
timeline = read_profile([sys.argv[1]], axes=json.loads(sys.argv[2]))
seconds = time.perf_counter() - begun
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, len(timeline.events)]))
"""

XPROF = """
import json, resource, sys, time
from xprof.convert import raw_to_tool_data
asked = {"resolution": "1000", "start_time_ms": "0", "end_time_ms": "1000000"}
begun = time.perf_counter()
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "trace_viewer@", {"trace_viewer_options": asked})
seconds = time.perf_counter() - begun
assert data
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, 0]))
"""


def main() -> None:
    if len(sys.argv) == 2:
        return _time_command(Path(sys.argv[1]))
    for name, make in (("TPU", tpu_profile), ("CPU", cpu_profile)):
        with tempfile.TemporaryDirectory() as scratch:
            path = make(EVENTS).write(Path(scratch) / "made")
            ours, theirs = [], []
            for turn in range(ROUNDS):
                ours.append(_run(OURS, path, json.dumps(AXES)))
                cold = Path(scratch) / f"xprof-{turn}" / path.name
                cold.parent.mkdir()
                shutil.copyfile(path, cold)
                theirs.append(_run(XPROF, cold))
            mine, xprof = (statistics.median(times[0] for times in runs) for runs in (ours, theirs))
            peak = max(run[1] for run in ours) / 2**30
            if name == "TPU":
                _compare_traces(Path(scratch), path)
            print(
                f"{name}: {EVENTS:,} events in {path.stat().st_size / 1e6:.0f} MB, {ours[0][2]:,.0f} operations: "
                f"{mine:.2f} s, {peak:.2f} GiB at the most; xprof {xprof:.2f} s; ratio {mine / xprof:.2f}"
            )


def _time_command(given: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        least = Space()
        plane = least.plane("/device:TPU:0", device_type_string="TPU v5 lite")
        plane.line("XLA Ops").event("%add.1 = f32[8]{0} add(f32[8]{0} %p, f32[8]{0} %p)", 0, 900)
        smallest = least.write(Path(scratch) / "least")
        times: dict[str, list[float]] = {"start": [], "trace": [], "xprof": []}
        environment = {name: word for name, word in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(scratch) / "bytecode")
        for turn in range(1 + 4 * ROUNDS):
            for what, path in (("start", smallest), ("trace", given)):
                command = [sys.executable, "-m", "compare.trace", path]
                begun = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, env=environment)
                times[what].append(time.perf_counter() - begun)
            cold = Path(scratch) / f"xprof-{turn}" / given.name
            cold.parent.mkdir()
            shutil.copyfile(given, cold)
            times["xprof"].append(_run(XPROF, cold)[0])
    start, trace, xprof = (statistics.median(taken[1:]) for taken in times.values())
    print(
        f"{given.name}, {given.stat().st_size / 1e6:.2f} MB: {trace:.2f} s, of which {start:.2f} s are start; "
        f"xprof {xprof:.2f} s; ratio without start {(trace - start) / xprof:.2f}"
    )


def _compare_traces(folder: Path, profile: Path) -> None:
    """The same events as a Chrome trace, against `xplane.pb`, in turn."""
    plain = write_trace(EVENTS, folder / "host.trace.json")
    packed = plain.with_name(f"{plain.name}.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes(), 6))
    runs: dict[Path, list[list[float]]] = {profile: [], plain: [], packed: []}
    for _ in range(ROUNDS):
        for path, times in runs.items():
            times.append(_run(OURS, path, json.dumps(AXES)))
    middle = {path: statistics.median(run[0] for run in times) for path, times in runs.items()}
    for path in (plain, packed):
        peak = max(run[1] for run in runs[path]) / 2**30
        print(
            f"{path.name}: {EVENTS:,} events in {path.stat().st_size / 1e6:.0f} MB: {middle[path]:.2f} s, "
            f"{peak:.2f} GiB at the most; xplane.pb {middle[profile]:.2f} s; ratio {middle[path] / middle[profile]:.2f}"
        )


def _run(code: str, *words: object) -> list[float]:
    """Seconds, peak bytes and events that a fresh process says."""
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(number) for number in json.loads(done.stdout.splitlines()[-1])]


def tpu_profile(events: int) -> Space:
    """Steps of 2500 operations on each of 8 devices; every 20th an all-reduce, every 50th an asynchronous copy."""
    space = Space()
    for device in range(DEVICES):
        plane = space.plane(f"/device:TPU:{device}", device_type_string="TPU v5 lite")
        lines = {name: plane.line(name) for name in ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")}
        at = 0
        for step in range(events // DEVICES // OPERATIONS):
            begun = at
            for number in range(OPERATIONS):
                text, about = _operation(number)
                line = lines["Async XLA Ops" if " copy-start(" in text else "XLA Ops"]
                stats = {"device_offset_ps": at * 1000, "device_duration_ps": 900_000}
                line.event(text, at, 900, display=text[1:].partition(" = ")[0], stats=stats, about=about)
                at += 1000
            lines["Steps"].event(str(step), begun, at - begun)
            lines["XLA Modules"].event("jit_step(17)", begun, at - begun, stats={"run_id": step})
    return space


def write_trace(events: int, path: Path) -> Path:
    """The profile of `tpu_profile` as the profiler's own converter writes it: an event a line, numbers as words."""
    lines = ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")
    with path.open("w") as file:
        file.write('{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n"traceEvents":[\n')
        for device in range(DEVICES):
            names = [("process_name", None, f"/device:TPU:{device}")]
            names += [("thread_name", thread, line) for thread, line in enumerate(lines)]
            for what, thread, word in names:
                place = {"pid": device} if thread is None else {"pid": device, "tid": thread}
                file.write(json.dumps({"ph": "M", "name": what, **place, "args": {"name": word}}) + ",\n")
            at = 0
            for step in range(events // DEVICES // OPERATIONS):
                begun = at
                for number in range(OPERATIONS):
                    text, about = _operation(number)
                    words = {
                        name: value.word if isinstance(value, Ref) else str(value) for name, value in about.items()
                    }
                    args = {
                        "bytes_accessed": words["bytes_accessed"],
                        "device_duration_ps": "900000",
                        "device_offset_ps": str(at * 1000),
                        "hlo_category": words["hlo_category"],
                        "long_name": text,
                        "model_flops": words["flops"],
                        "raw_bytes_accessed": words["bytes_accessed"],
                        "run_id": str(step),
                        "shape_with_layout": text.split()[2],
                        "source": words["source"],
                        "tf_op": words["tf_op"],
                    }
                    _write_event(file, device, 3 if " copy-start(" in text else 2, text[1:].split()[0], at, 900, args)
                    at += 1000
                _write_event(file, device, 0, str(step), begun, at - begun, {})
                _write_event(file, device, 1, "jit_step(17)", begun, at - begun, {"run_id": str(step)})
        file.write("{}\n]}\n")
    return path


def _write_event(
    file: TextIO, device: int, thread: int, name: str, start_ns: int, length_ns: int, args: dict[str, str]
) -> None:
    row = {"args": args, "dur": length_ns / 1e3, "name": name, "ph": "X", "pid": device, "tid": thread}
    file.write(json.dumps(row | {"ts": start_ns / 1e3}) + ",\n")


def _operation(number: int) -> tuple[str, dict[str, Ref | int | str]]:
    shape = "bf16[8,1024,4096]{2,1,0:T(8,128)(2,1)}"
    kind = "all-reduce" if number % 20 == 0 else "copy-start" if number % 50 == 1 else "fusion"
    groups = ", channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=%add"
    more = groups if kind == "all-reduce" else ", kind=kLoop, calls=%fused_computation" if kind == "fusion" else ""
    about = {
        "hlo_category": Ref(kind),
        "tf_op": f"jit(step)/layer.mlp.down/{kind}:{number}",
        "flops": number,
        "bytes_accessed": 1000 * number,
        "program_id": 17,
        "source": "model.py:12",
    }
    return f"%{kind}.{number} = {shape} {kind}({shape} %param.{number}){more}", about


def cpu_profile(events: int) -> Space:
    """As XLA:CPU writes it: a thread for each device, an end for each operation, waits inside each all-reduce."""
    space = Space()
    plane = space.plane("/host:CPU")
    python = plane.line("python")
    steps = events // DEVICES // (2 * OPERATIONS)
    for device in range(DEVICES):
        line = plane.line(f"tf_XLAPjRtCpuClient/{device}")
        at, count = 0, 0
        for step in range(steps):
            begun = at
            for number in range(OPERATIONS):
                name = f"all-reduce.{number}" if number % 20 == 0 else f"fusion.{number}"
                key = device << 32 | count
                stats = {
                    "hlo_op": Ref(name),
                    "hlo_module": Ref("jit_step"),
                    "program_id": 0,
                    "run_id": step,
                    "device_ordinal": device,
                    "_pt": 0,
                    "_p": key,
                }
                line.event(name, at, 900, stats=stats)
                line.event(f"end: {name}", at + 890, 5, stats={"_ct": 0, "_c": key})
                at, count = at + 1000, count + 1
            if not device:
                python.event("step", begun, at - begun, stats={"step_num": step})
    return space


if __name__ == "__main__":
    main()
