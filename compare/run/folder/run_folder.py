"""The run folder: written beside its place, then put there whole.

It can be mailed, committed, and read again with neither framework installed.
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
from compare.report.model.codec import JsonObject
from compare.run.arms import ARMS, Arm
from compare.run.cache import file_digest
from compare.run.folder import replace_folder
from compare.run.folder.replace_folder import CASE
from compare.run.folder.untrusted_paths import is_inside, list_cells
from compare.run.results import Outcome
from compare.run.scheduler import PROCESS, cores
from compare.run.tasks import PROFILES, strip_prefixes
from compare.timing.errors import TimingError
from compare.timing.join.programs import read_protos
from compare.timing.xplane import reader
from meshes.case import Case
from meshes.process.documents import read_json
from meshes.reduced import describe_reduction

PROGRAMS = "programs"
"""In case.json: which were asked for, as `<arm>/<phase>/<cell>`."""
TRACE = "trace"
DIGESTS = {"program.mlirbc": "program_digest", "optimized.hlo.gz": "hlo_digest", archive.FILE: "passes_digest"}
"""A cell's files, and where its about.json has their digests."""
CELL_FILES = (*DIGESTS, "about.json")
REMEDIES = ("remedies.json", "remedies.html")
"""What `compare.remedy --into RUN` leaves: of the programs that are there, so a new run goes without it."""


def folder_of(case: Case, *, parent: Path, arms: Collection[str]) -> Path:
    """Where the run folder of a case is; a run of some arms leaves that of all of them alone."""
    return parent / "-".join([case.name, *([] if set(arms) == set(ARMS) else arms)])


def put_in_place(beside: Path, place: Path, *, judged: bool) -> tuple[Path, list[str]]:
    """Where a run goes, and what to say of it: one that judged nothing leaves one that has programs where it is."""
    if judged or not _holds_programs(place):
        return place, []
    before = place.resolve()
    failed = before.with_name(f"{before.name}-failed")
    replace_folder.move_into_place(beside, failed)
    return failed, [f"nothing was judged: the run before stays in {place}; this one is beside it"]


def _holds_programs(place: Path) -> bool:
    """Whether a run folder is there that has a compiled program."""
    for found in place.glob("*/*/*/about.json"):
        with suppress(OSError, ValueError):
            if _read(found.parent, "about.json").get("status") == "ok" and (found.parent / CELL_FILES[1]).is_file():
                return True
    return False


def write_cells(folder: Path, *, case: Case, outcomes: Sequence[Outcome]) -> None:
    """Write the case, and each cell's results under `<arm>/<phase>/<cell>/`; of a failed one what there is."""
    programs = [f"{outcome.arm}/{outcome.phase}/{outcome.cell}" for outcome in outcomes]
    (folder / CASE).write_text(json.dumps(case.to_dict() | {PROGRAMS: programs}, indent=1) + "\n")
    for outcome in outcomes:
        cell = folder / outcome.arm / outcome.phase / outcome.cell
        cell.mkdir(parents=True)
        program = outcome.rewritten or outcome.program
        for source, name in ((program, "program.mlirbc"), (outcome.compiled, "optimized.hlo.gz")):
            if source:
                shutil.copyfile(source / name, cell / name)
        if outcome.compiled and (outcome.compiled / archive.FILE).is_file():
            shutil.copyfile(outcome.compiled / archive.FILE, cell / archive.FILE)
        found = merge_about(outcome, case=case)
        if outcome.profile:
            shutil.move(outcome.profile / TRACE, cell / TRACE)
            shutil.rmtree(outcome.profile, ignore_errors=True)
            found |= _unpack_program(cell, arm=ARMS.get(outcome.arm))
        for file, digest in DIGESTS.items():
            found[digest] = file_digest(cell / file) if (cell / file).is_file() else None
        rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
        (cell / "about.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


def _unpack_program(cell: Path, *, arm: Arm | None) -> JsonObject:
    """Write out the program that a cell's profile carries; what to say where it can't be read."""
    try:
        text = read_program_text(sorted(cell.glob(PROFILES)))
    except (HloError, TimingError) as error:
        return {"status": "failed", "failed_step": "profile", "error": f"its profile cannot be read: {error}"}
    text = strip_prefixes(text, arm) if arm else text
    (cell / "optimized.hlo.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return {}


def copy_run(run: Path, folder: Path) -> None:
    """The case, the cells and the remedies of a run folder, without what is drawn from them."""
    for path in (run / name for name in (CASE, *REMEDIES)):
        if is_inside(run, path):
            shutil.copyfile(path, folder / path.name)
    for cell in list_cells(run):
        _copy_cell(cell, folder / cell.relative_to(run), run=run)


def carry_measured(run: Path, folder: Path) -> None:
    """Take over the cells of a run folder that were measured and that the new one has not measured again."""
    for own in list_cells(run) if run.is_dir() else ():
        cell = folder / own.relative_to(run)
        if (own / TRACE).is_dir() and not cell.exists():
            _copy_cell(own, cell, run=run)


def _copy_cell(source: Path, cell: Path, *, run: Path) -> None:
    cell.mkdir(parents=True)
    for path in (*(source / name for name in CELL_FILES), *source.glob(PROFILES)):
        if is_inside(run, path):
            there = cell / path.relative_to(source)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)


def merge_about(outcome: Outcome, *, case: Case) -> JsonObject:
    """What was found of one cell: how it ended, and what its steps say, merged.  `case` is the run's."""
    # What a rewrite says is what the lowering said, but for the partitioner.
    said = outcome.rewritten or outcome.program
    steps = {"lower": said, "compile": outcome.compiled, "execute": outcome.profile}
    told = {
        step: _read(folder, "compiled.json" if step == "compile" else "about.json") for step, folder in steps.items()
    }
    stages = {step: found.pop("seconds", {}) for step, found in told.items()}
    versions = {name: version for found in told.values() for name, version in found.pop("versions", {}).items()}
    merged = {name: value for found in told.values() for name, value in found.items() if name not in {"arm", "phase"}}
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
        "seconds": {step: found for step, found in stages.items() if found},
        "process_s": {step: found.get("process_s") for step, found in processes.items()},
        "process_peak_bytes": {step: found.get("peak_bytes") for step, found in processes.items()},
        "cached": list(outcome.cached),
    }


def _read(folder: Path | None, name: str) -> JsonObject:
    found = read_json(folder / name) if folder else {}
    return found if isinstance(found, dict) else {}


def measured_label(case: Case, ran: Case, executed: Mapping[str, object]) -> str:
    """`measured on 8 virtual CPU devices on 2 cores (torch_xla), not a TPU; embed 4096 → 256, …`.

    Devices that share cores wait for those, too.  ran: the case that was executed for `case`.
    executed: of its about.json.
    """
    devices = executed.get("num_devices", ran.mesh.num_devices)
    runtime = executed.get("runtime", "unknown runtime")
    where = f"{_counted(devices, 'device')} ({executed.get('device_kind', 'unknown kind')}; {runtime})"
    if executed.get("platform") == "cpu":
        shared = f" on {_counted(executed['cores'], 'core')}" if "cores" in executed else ""
        where = f"{_counted(devices, 'virtual CPU device')}{shared} ({runtime}), not a TPU"
    smaller = describe_reduction(case, ran)
    return f"measured on {where}" + (f"; {smaller}" if smaller else "")


def _counted(number: object, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def read_program_text(files: Sequence[Path]) -> str:
    """The HLO text of the program that a profile of one of our workers is about.

    The largest that it carries: what runs beside a step (a fill, a transfer) is a line or two.  `HloError` or
    `TimingError` where it carries none that can be read.
    """
    found = read_protos(reader.read_file(path) for path in files)
    if not found:
        raise TimingError("the profile carries no program")
    return write_hlo_text(max(found.values(), key=len))
