"""table.toml: changed lines of each of ROOMS, and a test that fails with each."""

import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.places import ROOT

ROOMS = ("reader", "contract", "verdict", "model", "energy", "network", "chip")
LEFT_OUT = (".git", ".venv", "__pycache__", ".hypothesis", "*_cache", "build")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One line, or lines that stand together, changed."""

    room: str
    file: str
    old: str
    """Whole lines; they stand once in the file."""
    new: str
    caught_by: str
    """A test of the five-minute run, as pytest names it."""

    def places(self, text: str) -> int:
        """How often the lines stand in the file's text."""
        return f"\n{text}\n".count(f"\n{self.old}\n")

    def plant(self, text: str) -> str:
        """The file's text with the lines changed."""
        return f"\n{text}\n".replace(f"\n{self.old}\n", f"\n{self.new}\n")[1:-1]


def read_table() -> list[Mutation]:
    """All of them, in the order of the table."""
    text = Path(__file__).with_name("table.toml").read_text(encoding="utf-8")
    return [Mutation(room, **row) for room, rows in tomllib.loads(text).items() for row in rows]


def copy_checkout(target: Path) -> Path:
    """A copy of the checkout, in which lines may be changed."""
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return target
