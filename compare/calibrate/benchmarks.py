"""The process that times small programs on a device, and the windows that it measures."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from compare.calibrate.timed_programs import COLLECTIVES, DEPTH, IDLE, MATMUL, SIZES, list_programs
from compare.calibrate.windows import WORK, make_table
from compare.calibrate.work import Device, count_work
from compare.calibrate.xprof import measure_joules
from compare.run.processes import Command, Pool, ProcessEnd
from compare.run.tasks import QUIET
from compare.timeline.errors import TimingError
from meshes.process.documents import parse_json

MODULE = "jax_impl.microbenchmarks"
TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The windows of one device."""

    table: pd.DataFrame
    device: Mapping[str, object]
    """`platform kind num_devices runtime versions meter date`, as the process tells them."""
    notes: tuple[str, ...]

    @property
    def generation(self) -> str:
        """Of a TPU of the table, else the platform."""
        known = Device.of(str(self.device["kind"]), []).generation
        return known.name if known else str(self.device["platform"])


def measure_device(
    platform: str, *, kinds: tuple[str, ...], num_devices: int, repeats: int, notify: Callable[[str], None]
) -> Measured:
    """Time the programs in a process of their own.  `TimingError`, one line, where it fails."""
    programs = list_programs(platform, kinds=kinds)
    request = {
        "platform": platform,
        "num_devices": num_devices,
        "seconds": SIZES[platform].seconds,
        "repeats": repeats,
        "programs": programs,
    }
    with tempfile.TemporaryDirectory(prefix="calibrate-", ignore_cleanup_errors=True) as folder:
        out = Path(folder)
        (out / "request.json").write_text(json.dumps(request), encoding="utf-8")
        ended = _run(out, notify)
        if ended.status != "ok":
            raise TimingError(ended.error)
        measured = parse_json((out / "windows.json").read_bytes())
        texts = {entry["number"]: out / f"{entry['number']}.hlo" for entry in measured["programs"]}
        hlo = {at: path.read_text() for at, path in texts.items() if path.is_file()}
        return build_windows(measured, programs, hlo, profiles=out)


def _run(out: Path, notify: Callable[[str], None]) -> ProcessEnd:
    command = Command(
        argv=[sys.executable, "-P", "-m", MODULE, str(out / "request.json"), str(out)],
        stderr=out / "stderr",
        environment={**os.environ, **QUIET},
        timeout_s=TIMEOUT_S,
    )
    stages = {""}

    def show_stage(_: int, stage: str, __: float) -> None:
        if stage not in stages:
            stages.add(stage)
            notify(stage)

    with Pool[int](show_stage) as pool:
        pool.start(0, command)
        while not (ended := pool.wait()):
            pass
        return ended[0]


def build_windows(
    measured: Mapping[str, object], programs: list[dict[str, object]], texts: Mapping[int, str], *, profiles: Path
) -> Measured:
    """The windows with their work, from what the process wrote.

    texts: by program, its compiled HLO.  profiles: the folder of those that tell a window's energy.
    """
    device = _table(measured["device"])
    chip = Device.of(str(device["kind"]), _coords(device))
    rows: list[dict[str, object]] = []
    notes = []
    for entry in map(_table, _list(measured["programs"])):
        number = entry["number"]
        assert isinstance(number, int)
        program = programs[number]
        if "error" in entry:
            notes.append(f"{program['name']} was not measured: {entry['error']}")
            continue
        work = count_work(texts[number], chip)
        if program["kind"] == MATMUL and not work["matrix_flops"]:
            # A library's kernel, of which the text does not say how much it computes.
            work["matrix_flops"] = 2.0 * float(str(program["size"])) ** 3 * DEPTH
        rows += _rows(program, work, _list(entry["windows"]), profiles)
    num_devices = float(str(device["num_devices"]))
    idle = chip.count(int(num_devices))
    rows += _rows({"name": IDLE, "kind": IDLE}, idle, _list(measured.get("idle", [])), profiles)
    if num_devices < 2 and any(program["kind"] in COLLECTIVES for program in programs):
        notes.append("no collective is measured: there is one device")
    cores = device["num_cores"]
    if device["platform"] == "cpu" and isinstance(cores, int) and cores < num_devices:
        notes.append(f"{num_devices:.0f} virtual devices share {cores} cores: these are no constants of a device")
    if not rows:
        raise TimingError(notes[0] if notes else "nothing was measured")
    return Measured(table=make_table(rows), device=device, notes=tuple(notes))


def _rows(
    program: Mapping[str, object], work: Mapping[str, float], windows: list[object], profiles: Path
) -> Iterator[dict[str, object]]:
    for window in map(_table, windows):
        calls = float(str(window["calls"]))
        scaled = {name: amount * calls if name in WORK else amount for name, amount in work.items()}
        seconds, energy = float(str(window["time_s"])), window.get("energy_j")
        if "profile" in window:
            energy = measure_joules(profiles / str(window["profile"]), seconds=seconds)
        yield {
            "name": program["name"],
            "kind": program["kind"],
            "calls": calls,
            "time_s": seconds,
            "energy_j": float("nan") if energy is None else energy,
            **scaled,
        }


def _table(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _coords(device: Mapping[str, object]) -> list[list[int]]:
    return [[int(str(number)) for number in _list(each)] for each in _list(device["coords"])]
