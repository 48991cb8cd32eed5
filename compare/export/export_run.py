"""A run as another tool's folders: all of its programs, or none."""

from collections.abc import Container, Mapping
from pathlib import Path

from compare.export.folder.errors import ExportError
from compare.export.folder.exported_programs import select_programs
from compare.export.folder.write_folder import open_export
from compare.export.targets import Write
from compare.run.folder.load_run import Run
from meshes.process.log import log_note


def export_run(
    run: Run, out: Path, *, write: Write, to: str, platforms: Container[str], words: Mapping[str, str]
) -> list[str]:
    """Write the programs with these words (`arm`, `phase`, `cell`); the names of their folders.

    Programs for a platform that the tool does not take are left out, with a line on stderr.  `ExportError` where none
    is left, or one cannot be written: then nothing is.
    """
    with open_export(out, to=to) as folder:
        names, left_out = [], []
        for program in select_programs(run, **words):
            if program.platform in platforms:
                names.append(write(program, folder))
            else:
                left_out.append(program.words)
        if not names:
            raise ExportError(f"{run.folder} has no program for {to}: {', '.join(left_out)} ran on CPU devices")
        folder.finish(names)
    for name in left_out:
        log_note(f"{name} is left out: it was compiled for CPU devices")
    return names
