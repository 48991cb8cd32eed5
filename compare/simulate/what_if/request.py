"""What is asked of a run: on which machine, with which changes, swept over what."""

from dataclasses import dataclass
from pathlib import Path

from compare.network.machines.kinds import KINDS, SCALES, TITLES
from compare.run.errors import WorkError
from compare.run.folder.replace_folder import CASE, SIMULATION, refuse_foreign_folder
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

COMPUTE, MACHINE = "compute", "machine"
_TITLES = {**TITLES, COMPUTE: "speed of compute", MACHINE: "machines"}


@dataclass(frozen=True, slots=True)
class Sweep:
    """One number of the machine over a range."""

    word: str
    """Of `scale_machine`, `compute`, `machine`, a kind of collective, or a key of the machine's file."""
    values: tuple[float | str, ...]
    """Words of a list: machines, algorithms, values of a key."""
    is_log: bool = False

    @property
    def is_factor(self) -> bool:
        return self.word in SCALES or self.word == COMPUTE

    @property
    def is_list(self) -> bool:
        return any(isinstance(value, str) for value in self.values)

    @property
    def what(self) -> str:
        """In words, as a title has it: `ICI bandwidth`."""
        if self.word in KINDS:
            return f"algorithms of {self.word}"
        return _TITLES.get(self.word, self.word)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Programs on a machine."""

    run: Path
    chip: Path | None
    """A user's file of the run's chips; `None`: that of the run folder, or the generation's."""
    machine: str | None
    """A file or a name; `None`: what the programs were compiled for."""
    changes: tuple[tuple[str, str], ...]
    """(`scale` | `set` | `algorithm`, `key=value`), in this order."""
    repeat: int
    sweep: Sweep | None
    best: bool
    out: Path | None
    into: bool
    json: bool

    def check_out(self) -> None:
        """`WorkError` where `--out` is no place for a run, or holds the one that is read, or one not simulated."""
        out = self.out
        if out is None:
            return
        refuse_foreign_folder(out.resolve())
        if out.resolve() == self.run.resolve():
            raise WorkError(
                f"--out {out} is the run itself, which stays as it is; name another folder, or write numbers and "
                "figure into it with --into"
            )
        if (out / CASE).is_file() and not (out / SIMULATION).is_file():
            raise WorkError(
                f"--out {out} holds a run that is not simulated (no {SIMULATION} in it); name another folder; --into "
                "writes numbers and figure into the run that is simulated"
            )


def split_change(change: str, option: str) -> tuple[str, str]:
    """`ici=2` of an option.  Raises `TimingError` for anything else."""
    word, equals, value = change.partition("=")
    if not equals or not word.strip() or not value.strip():
        raise TimingError(f"{option}: {quote(change)} is no change; write one like ici=2")
    return word.strip(), value.strip()
