"""Compile programs with libtpu: each in a process of its own, in parallel, and cached."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compare.compile.rematerialised import LOG_WARNINGS, Rematerialised, find_rematerialised
from compare.compile.requests import Remedy
from compare.compile.workers.compile_any import format_request
from compare.passes import archive as passes
from compare.run.arms import COMPILER, read_versions
from compare.run.cache import Cache, make_key
from compare.run.errors import WorkError
from compare.run.processes import Command, Pool, ProcessEnd
from compare.run.tasks import Task, compiler_sources, describe_environment
from meshes.process.documents import read_json

TIMEOUT_S = 1800.0
KIND = "compiled-own"
"""The kind of its cache entries."""
MODULE = "compare.compile.workers.compile_any"
RESULTS = ("optimized.hlo.gz", "compiled.json", "before.hlo.gz")


class CompileFailed(WorkError):  # noqa: N818
    """One program could not be compiled; the message says why."""

    def __init__(self, number: int, why: str):
        super().__init__(why)
        self.number = number


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A compiled program's text, and its target and compiler."""

    text: str
    before: str
    """The text before the partitioner, without names of devices."""
    how: str
    topology: str
    """`v5e:2x4`, or `2xv5e:2x4`."""
    device_ids: tuple[int, ...]
    """The runtime's id of each device of the program."""
    meshes: tuple[str, ...]
    """Shardy's meshes, as the program writes them."""
    passes: bytes
    """The archive of the texts between the compiler's passes; empty where none were recorded."""
    chosen: Mapping[int, str]
    """Result -> sharding, of those that the program leaves open and that the compiler splits."""
    rematerialised: tuple[Rematerialised, ...]


def compile_all(
    programs: Mapping[int, bytes],
    *,
    num_devices: int,
    topology: str,
    cache: Cache,
    notify: Callable[[int, str, float], None],
    remedies: Mapping[int, Remedy] | None = None,
) -> dict[int, CompiledProgram]:
    """Compile each for `topology`, or for the smallest v5e slice that it fills.  Raises `CompileFailed`.

    num_devices: the product of the axes; 0: as each program says.
    remedies: what is to be written into the programs of these numbers first.
    notify: called with number, stage and seconds of each program that is compiled, about ten times a second.
    """
    remedies = remedies or {}
    keys = {number: _key(data, num_devices, topology, remedies.get(number)) for number, data in programs.items()}
    entries = {number: cache.find(KIND, key, results=RESULTS) for number, key in keys.items()}
    folders: dict[int, Path] = {}
    try:
        with Pool[int](notify) as pool:
            for number, data in programs.items():
                if entries[number] is None:
                    folders[number] = out = cache.begin()
                    (out / "program").write_bytes(data)
                    request = format_request(
                        out / "program", topology=topology, num_devices=num_devices, remedy=remedies.get(number)
                    )
                    (out / "request.json").write_text(request)
                    pool.start(number, _command(out))
            while len(pool):
                for number, ended in pool.wait().items():
                    entries[number] = _keep_result(number, ended, folders[number], cache, keys[number])
        return {number: _read_result(entry) for number, entry in entries.items() if entry}
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def _key(data: bytes, num_devices: int, topology: str, remedy: Remedy | None) -> str:
    made_by = {"versions": read_versions(COMPILER), "sources": compiler_sources()}
    request = {"program": hashlib.sha256(data).hexdigest(), "num_devices": num_devices, "topology": topology}
    return make_key({**request, "remedy": remedy, **made_by, **describe_environment()})


def _command(out: Path) -> Command:
    step = Task(name="compile", kind="", key="", module=MODULE, request="", results=RESULTS)
    return Command(
        argv=step.argv(out / "request.json", out),
        stderr=out / "stderr",
        environment=step.environment() | LOG_WARNINGS,
        timeout_s=TIMEOUT_S,
    )


def _keep_result(number: int, ended: ProcessEnd, out: Path, cache: Cache, key: str) -> Path:
    """Move the results, without the input program, into the cache; returns the cache entry."""
    if ended.status != "ok":
        raise CompileFailed(number, ended.error)
    about = read_json(out / "compiled.json")
    log = (out / "stderr").read_text(errors="replace")
    (out / "compiled.json").write_text(json.dumps(about | {"rematerialised": find_rematerialised(log)}))
    entry = cache.begin()
    for name in (*RESULTS, passes.FILE):
        if name in RESULTS or (out / name).is_file():
            (out / name).rename(entry / name)
    return cache.keep(entry, kind=KIND, key=key)


def _read_result(entry: Path) -> CompiledProgram:
    about = read_json(entry / "compiled.json")
    slices = f"{about['num_slices']}x" if about["num_slices"] > 1 else ""
    topology = f"{slices}{about['topology']}"
    how = f"compiled for {topology} by libtpu {about['versions']['libtpu']}"
    text, before = (gzip.decompress((entry / name).read_bytes()).decode() for name in (RESULTS[0], RESULTS[2]))
    packed = (entry / passes.FILE).read_bytes() if (entry / passes.FILE).is_file() else b""
    return CompiledProgram(
        text,
        before,
        how,
        topology,
        tuple(about["device_ids"]),
        tuple(about["meshes"]),
        packed,
        {int(number): sharding for number, sharding in about["chosen"].items()},
        tuple(about["rematerialised"]),
    )
