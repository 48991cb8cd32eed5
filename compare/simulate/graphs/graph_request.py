"""What is asked of `compare.simulate FOLDER`: which graphs, on which machine, by whose rules."""

from dataclasses import dataclass
from pathlib import Path

from compare.run.folder.replace_folder import CASE


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRequest:
    """Programs, a machine, and by whose rules they run."""

    path: Path
    machine: str | None
    """A file or a name; `None`: what stands beside the trace, or what the programs were compiled for."""
    as_astra_sim: bool
    aware: bool
    words: tuple[str, str, str]
    """Arm, phase and cell of a run's programs; "" for any."""
    chip: Path | None
    """What a run's chips are taken for; `None`: what the run keeps, or the generation's."""
    out: Path | None
    """Of a trace on our own engine: a timeline for Perfetto."""
    json: bool

    @property
    def is_run(self) -> bool:
        return (self.path / CASE).is_file()
