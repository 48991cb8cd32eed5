"""The contents of a run folder.

It can be mailed, committed, and read with neither framework installed.
"""

import gzip
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from compare.hlo.proto.program import write_hlo_text
from compare.hlo.text.errors import HloError
from compare.passes import archive
from compare.profile.join.carried_programs import read_protos
from compare.profile.xplane import reader
from compare.report.model.codec import JsonObject
from compare.run.arms import ARMS, Arm
from compare.run.cache import file_digest
from compare.run.folder import replace_folder
from compare.run.folder.chip import CHIP, OLD_CHIP
from compare.run.folder.made_by import MADE_BY, describe_maker
from compare.run.folder.replace_folder import CASE, PROGRAMS, SIMULATION
from compare.run.folder.untrusted_paths import is_inside, list_cells
from compare.run.results import Outcome
from compare.run.scheduler import PROCESS, cores
from compare.run.tasks import PROFILES, ROOT, strip_prefixes
from compare.timeline.errors import TimingError
from meshes.case import Case
from meshes.process.documents import read_json
from meshes.reduced import describe_reduction

TRACE = "trace"
DIGESTS = {"program.mlirbc": "program_digest", "optimized.hlo.gz": "hlo_digest", archive.FILE: "passes_digest"}
"""A cell's file -> the key of its digest in about.json."""
CELL_FILES = (*DIGESTS, "about.json")
WHAT_IF = ("what-if.json", "figures/what-if.svg", "figures/what-if.png")
"""Files of `compare.simulate RUN --into`, which a new run drops as well."""
REMEDIES = ("remedies.json", "remedies.html")
"""Files of `compare.remedy --into RUN`, which apply to the programs of one run; a new run drops them."""


def folder_of(case: Case, *, parent: Path, arms: Collection[str]) -> Path:
    """The run folder of a case; a run of some arms has a folder of its own."""
    return parent / "-".join([case.name, *([] if set(arms) == set(ARMS) else arms)])


def put_in_place(scratch: Path, target: Path, *, judged: bool) -> tuple[Path, list[str]]:
    """(target folder, notes): a run without judged programs does not replace one that has programs."""
    if judged or not _holds_programs(target):
        return target, []
    previous = target.resolve()
    failed = previous.with_name(f"{previous.name}-failed")
    replace_folder.move_into_place(scratch, failed)
    return failed, [f"nothing was judged: the run before stays in {target}; this one is beside it"]


def _holds_programs(folder: Path) -> bool:
    """Whether a run folder has a compiled program."""
    for about in folder.glob("*/*/*/about.json"):
        with suppress(OSError, ValueError):
            if _read(about.parent, "about.json").get("status") == "ok" and (about.parent / CELL_FILES[1]).is_file():
                return True
    return False


def write_cells(folder: Path, *, case: Case, outcomes: Sequence[Outcome]) -> None:
    """Write the case, and each cell's results under `<arm>/<phase>/<cell>/`, as far as it got."""
    programs = [f"{outcome.arm}/{outcome.phase}/{outcome.cell}" for outcome in outcomes]
    words = case.to_dict() | {PROGRAMS: programs, MADE_BY: describe_maker(ROOT)}
    (folder / CASE).write_text(json.dumps(words, indent=1) + "\n")
    for outcome in outcomes:
        cell = folder / outcome.arm / outcome.phase / outcome.cell
        cell.mkdir(parents=True)
        program = outcome.rewritten or outcome.program
        for source, name in ((program, "program.mlirbc"), (outcome.compiled, "optimized.hlo.gz")):
            if source:
                shutil.copyfile(source / name, cell / name)
        if outcome.compiled and (outcome.compiled / archive.FILE).is_file():
            shutil.copyfile(outcome.compiled / archive.FILE, cell / archive.FILE)
        about = merge_about(outcome, case=case)
        if outcome.profile:
            shutil.move(outcome.profile / TRACE, cell / TRACE)
            shutil.rmtree(outcome.profile, ignore_errors=True)
            about |= _unpack_program(cell, arm=ARMS.get(outcome.arm))
        for file, digest in DIGESTS.items():
            about[digest] = file_digest(cell / file) if (cell / file).is_file() else None
        rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in about.items())
        (cell / "about.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


def _unpack_program(cell: Path, *, arm: Arm | None) -> JsonObject:
    """Write the HLO of the program in a cell's profile; returns about.json fields if it cannot be read."""
    try:
        text = read_program_text(sorted(cell.glob(PROFILES)))
    except (HloError, TimingError) as error:
        return {"status": "failed", "failed_step": "profile", "error": f"its profile cannot be read: {error}"}
    text = strip_prefixes(text, arm) if arm else text
    (cell / "optimized.hlo.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return {}


def copy_run(run: Path, folder: Path) -> None:
    """Copy the case, the cells and the remedies of a run folder, without rendered files."""
    for name in (CASE, SIMULATION, OLD_CHIP, CHIP, *REMEDIES, *WHAT_IF):
        if is_inside(run, run / name):
            copy = folder / (CHIP if name == OLD_CHIP else name)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(run / name, copy)
    for cell in list_cells(run):
        _copy_cell(cell, folder / cell.relative_to(run), run=run)


def carry_measured(run: Path, folder: Path) -> None:
    """Copy measured cells of the old run folder that the new one has not measured again."""
    for old_cell in list_cells(run) if run.is_dir() else ():
        cell = folder / old_cell.relative_to(run)
        if (old_cell / TRACE).is_dir() and not cell.exists():
            _copy_cell(old_cell, cell, run=run)


def _copy_cell(source: Path, cell: Path, *, run: Path) -> None:
    cell.mkdir(parents=True)
    for path in (*(source / name for name in CELL_FILES), *source.glob(PROFILES)):
        if is_inside(run, path):
            copy = cell / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def merge_about(outcome: Outcome, *, case: Case) -> JsonObject:
    """A cell's about.json: how it ended, merged with the metadata of its steps.  `case` is the run's."""
    # A rewrite repeats the lowering's metadata, except for the partitioner.
    lowered = outcome.rewritten or outcome.program
    steps = {"lower": lowered, "compile": outcome.compiled, "execute": outcome.profile}
    abouts = {
        step: _read(folder, "compiled.json" if step == "compile" else "about.json") for step, folder in steps.items()
    }
    stages = {step: about.pop("seconds", {}) for step, about in abouts.items()}
    versions = {name: version for about in abouts.values() for name, version in about.pop("versions", {}).items()}
    merged = {name: value for about in abouts.values() for name, value in about.items() if name not in {"arm", "phase"}}
    ran = steps | {"lower": outcome.program, "rewrite": outcome.rewritten}
    processes = {step: _read(folder, PROCESS) for step, folder in ran.items() if folder}
    if outcome.executed:
        merged["case"] = outcome.executed.to_dict()
        merged["executed"] = merged.get("executed", {}) | {"cores": cores()}
        merged["label"] = measured_label(case, outcome.executed, merged["executed"])
        merged["measured_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "arm": outcome.arm,
        "phase": outcome.phase,
        "cell": outcome.cell,
        "status": outcome.status,
        "error": outcome.error,
        "failed_step": outcome.step,
        "stderr": list(outcome.stderr[-40:]),
        "versions": versions,
        **merged,
        "seconds": {step: seconds for step, seconds in stages.items() if seconds},
        "process_s": {step: process.get("process_s") for step, process in processes.items()},
        "process_peak_bytes": {step: process.get("peak_bytes") for step, process in processes.items()},
        "cached": list(outcome.cached),
    }


def _read(folder: Path | None, name: str) -> JsonObject:
    value = read_json(folder / name) if folder else {}
    return value if isinstance(value, dict) else {}


def measured_label(case: Case, ran: Case, executed: Mapping[str, object]) -> str:
    """`measured on 8 virtual CPU devices on 2 cores (torch_xla), not a TPU; embed 4096 → 256, …`.

    Devices that share cores also wait for those.  ran: the case that was executed for `case`.
    executed: from its about.json.
    """
    devices = executed.get("num_devices", ran.mesh.num_devices)
    runtime = executed.get("runtime", "unknown runtime")
    where = f"{_count_text(devices, 'device')} ({executed.get('device_kind', 'unknown kind')}; {runtime})"
    if executed.get("platform") == "cpu":
        shared = f" on {_count_text(executed['cores'], 'core')}" if "cores" in executed else ""
        where = f"{_count_text(devices, 'virtual CPU device')}{shared} ({runtime}), not a TPU"
    smaller = describe_reduction(case, ran)
    return f"measured on {where}" + (f"; {smaller}" if smaller else "")


def _count_text(number: object, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def read_program_text(files: Sequence[Path]) -> str:
    """The HLO text of the profiled program, from a profile of one of our workers.

    The largest in the profile: helper programs (a fill, a transfer) are a line or two.  `HloError` or `TimingError`
    where it has none that can be read.
    """
    protos = read_protos(reader.read_file(path) for path in files)
    if not protos:
        raise TimingError("the profile carries no program")
    return write_hlo_text(max(protos.values(), key=len))
