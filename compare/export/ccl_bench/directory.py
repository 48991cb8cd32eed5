"""One trace directory: the card, the trace, the same trace gzipped, and a run folder of its program alone.

CCL-Bench's tools take the only `*.yaml` and the only `*.json` beside each other, look for `tpu` in the folder's name,
and one of them for the only `*.json.gz` at any depth; what else there is lies deeper, and is named otherwise.
"""

import gzip
import json
import shutil
from pathlib import Path

from compare.export.ccl_bench.card import write_card
from compare.export.ccl_bench.ccl_trace import write_trace
from compare.export.folder.errors import ExportError
from compare.export.folder.exported_programs import SelectedProgram
from compare.export.folder.write_folder import ExportFolder
from compare.run.folder.replace_folder import CASE, PROGRAMS

HOST = "host0"
PROGRAM = "program"
"""The run folder of this one program, which `compare.metric` reads besides, and `compare.report` draws."""
_CELL_FILES = ("about.json", "optimized.hlo.gz")


def write(timed: SelectedProgram, folder: ExportFolder) -> str:
    """Write one program's directory; its name."""
    program, name = timed.program, directory_name(timed)
    if program.module is None:
        raise ExportError(f"{timed.words} was not compiled")
    place = folder.path / name
    (place / "gzip").mkdir(parents=True)
    trace = write_trace(timed.timeline, program.module, program.rows, platform=timed.platform.upper())
    file = f"{HOST}.trace.json"
    (place / f"{name}.yaml").write_text(write_card(timed, trace=file), encoding="utf-8")
    (place / file).write_bytes(trace)
    (place / "gzip" / f"{file}.gz").write_bytes(gzip.compress(trace, compresslevel=6, mtime=0))
    _write_program(timed, place / PROGRAM)
    return name


def _write_program(timed: SelectedProgram, place: Path) -> None:
    """The run folder of one program: its case, its HLO, and what is known of it."""
    key = timed.program.result.key
    case = timed.run.case.at(phases=(key[1],))
    cell = place.joinpath(*key)
    cell.mkdir(parents=True)
    for file in _CELL_FILES:
        shutil.copyfile(timed.run.folder.joinpath(*key, file), cell / file)
    (place / CASE).write_text(json.dumps(case.to_dict() | {PROGRAMS: ["/".join(key)]}, indent=1) + "\n")


def directory_name(timed: SelectedProgram) -> str:
    """The program's name; with `tpu` in it whatever it ran on."""
    return timed.name if "tpu" in timed.name.lower() else f"{timed.name}-json_tpu"
