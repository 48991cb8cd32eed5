"""What a run's chips are taken for: a user's file (`--chip FILE`), the copy in the run folder, or the generation."""

import json
from pathlib import Path

from compare.energy.voltage import parse_voltage
from compare.run.errors import WorkError
from compare.run.folder.untrusted_paths import is_inside
from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip
from meshes.devices.chip_file import read_chip
from meshes.process import atomic_files
from meshes.process.documents import read_toml
from meshes.process.errors import MeshError
from meshes.process.log import note_once

CHIP, OLD_CHIP = "chip.toml", "power.toml"
"""In a run folder, a copy of a user's chip file (`--chip FILE`), and its earlier name."""


def find_chip_file(folder: Path) -> Path | None:
    """The copy that a run folder keeps; `None` where it has none."""
    if is_inside(folder, folder / CHIP):
        return folder / CHIP
    if not is_inside(folder, folder / OLD_CHIP):
        return None
    note_once(f"{folder / OLD_CHIP} is called {CHIP} now; compare.report {folder} renames it")
    return folder / OLD_CHIP


def find_chip(folder: Path, row: Chip, given: Path | None = None) -> Chip:
    """What the chips of a run are taken for: as a user's file says, or the one that the folder keeps, or their
    generation.  `WorkError`."""
    path = given or find_chip_file(folder)
    return read_chip_of(path, row) if path else row


def read_chip_of(path: Path, row: Chip) -> Chip:
    """A user's file for chips of a generation.  `WorkError`, one line, where it is not for these chips."""
    try:
        chip = read_chip(path, row)
        parse_voltage(chip.voltage)  # of `compare.energy`; what is wrong there is said at once
    except TimingError as error:
        raise WorkError(f"{path}: {error}") from None
    except MeshError as error:
        raise WorkError(error) from None
    except OSError as error:
        raise WorkError(f"{path}: {error.strerror or error}") from None
    return chip


def copy_chip(path: Path, folder: Path, row: Chip) -> None:
    """Put a user's file into a run folder.  The same errors."""
    atomic_files.write_text(folder / CHIP, name_chip(path, row))


def name_chip(path: Path, row: Chip) -> str:
    """The text of a user's file; one that says no name has that of the file.  The same errors."""
    title = read_chip_of(path, row).title
    name = "" if "name" in read_toml(path) else f"name = {json.dumps(title)}\n"
    return name + path.read_text(encoding="utf-8")
