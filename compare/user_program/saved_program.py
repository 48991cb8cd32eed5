"""A program saved in a folder that `compare.hlo`, `compare.diff` and `compare.history` can read."""

import gzip
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from compare.hlo.devices.axes import validate_axes
from compare.hlo.text.errors import HloError
from compare.hlo.text.files import decode_text, decompress
from compare.hlo.text.metadata import SourceNames
from compare.passes import archive as passes
from compare.run.errors import WorkError

ABOUT = "program.json"
"""The file that marks a saved program."""
HLO = "optimized.hlo.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedProgram:
    """A compiled program: its text and metadata."""

    text: str
    axes: Mapping[str, int]
    compiled: str = ""
    """Target and compiler, where it was compiled here; empty where it came compiled."""
    topology: str = ""
    """What it was compiled for here, like `v5e:2x4`: its logical device i is the i-th chip, row by row."""
    device_ids: tuple[int, ...] = ()
    """The runtime's id of each device of the program; needed to read the groups of a program of several slices."""
    notes: tuple[str, ...] = ()
    passes: bytes = field(default=b"", repr=False)
    """The archive of the texts between the compiler's passes; empty where none were recorded."""
    names: SourceNames = field(default_factory=SourceNames)
    """The scope map that it was read with, and which files count as the user's."""


def is_saved(path: Path) -> bool:
    return (path / ABOUT).is_file()


def save(folder: Path, program: SavedProgram) -> None:
    """Write it atomically.  Raises `WorkError` where the folder holds something else or cannot be written."""
    if folder.exists() and not (folder.is_dir() and (is_saved(folder) or not any(folder.iterdir()))):
        raise WorkError(f"{folder} is there, and no program that was saved (no {ABOUT} in it); name another folder")
    target = folder.absolute()
    scratch = target.with_name(f".{target.name}.{uuid4().hex[:8]}.part")
    about = {
        "axes": dict(program.axes),
        "compiled": program.compiled,
        "topology": program.topology,
        "device_ids": program.device_ids,
        "notes": program.notes,
        "scopes": program.names.scope_map,
        "owns": program.names.owns,
    }
    try:
        scratch.mkdir(parents=True)
        (scratch / ABOUT).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (scratch / HLO).write_bytes(gzip.compress(program.text.encode(), mtime=0))
        if program.passes:
            (scratch / passes.FILE).write_bytes(program.passes)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    except OSError as error:
        raise WorkError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_saved(folder: Path) -> SavedProgram:
    """Raises `WorkError` where it is not a saved program, or damaged."""
    try:
        about: object = json.loads((folder / ABOUT).read_bytes())
        text = decode_text(decompress((folder / HLO).read_bytes()))
        archive = folder / passes.FILE
        packed = archive.read_bytes() if archive.is_file() else b""
        if text is None or not isinstance(about, dict):
            raise HloError(f"{HLO if text is None else ABOUT} is not what was written")
        ids, notes = about.get("device_ids", []), about.get("notes", [])
        if not all(type(item) is int for item in ids) or not all(type(item) is str for item in notes):
            raise HloError(f"{ABOUT} has other device_ids or notes than were written")
        axes = validate_axes(about["axes"]) if about.get("axes") else {}
        names = SourceNames.of(about.get("scopes"), about.get("owns", ()))
    except OSError as error:
        raise WorkError(f"{folder} is no program that was saved: {error.strerror or error}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise WorkError(f"{folder} cannot be read again: {error}") from None
    return SavedProgram(
        text=text,
        axes=axes,
        compiled=str(about.get("compiled", "")),
        topology=str(about.get("topology", "")),
        device_ids=tuple(ids),
        notes=tuple(notes),
        passes=packed,
        names=names,
    )
