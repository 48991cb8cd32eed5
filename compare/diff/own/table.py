"""The collectives of a user's program: a table for notebooks, terminals and pandas."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from compare.diff import lines as diff_lines
from compare.diff.diff_report import diff_report
from compare.diff.matching import match
from compare.diff.own.expected import COUNTS, Surprise, count_collectives
from compare.diff.own.show import print_to_text, render_html
from compare.diff.print_diff import print_diff
from compare.diff.result import ProgramsDiff
from compare.hlo.collective import ORDERS, PUBLIC, Collective, sort_rows
from compare.hlo.scope_key import path_of
from compare.hlo.text.module import read
from compare.render import units
from compare.render.collectives_table import (
    INFERRED,
    LEGEND,
    compiled_text,
    kind_lines,
    local_source,
    print_rows,
    total_line,
)
from compare.render.training_parts import training_lines
from compare.run.errors import WorkError
from compare.user_program.program_mesh import format_axes
from compare.user_program.saved_program import SavedProgram, save

if TYPE_CHECKING:
    import pandas as pd  # takes longer to load than a program takes to read

    from compare.diff.own.modelled_step import ModelledStep


@dataclass(frozen=True)
class Table:
    """The collectives of one program, in its order; each has the columns of `docs/definitions.md`, section 1."""

    rows: tuple[Collective, ...]
    axes: Mapping[str, int]
    compiled: str = ""
    """Target and compiler, if it was compiled here; empty if it came compiled."""
    saved: SavedProgram | None = None
    mesh: Mapping[str, int] = field(default_factory=dict)
    """The program's mesh, if it records one."""
    sort: str = ORDERS[0]
    """The order in which rows are printed, shown and put into a frame."""

    @property
    def text(self) -> str:
        """The compiled program; each row has its `line` in it, from 1."""
        return self.saved.text if self.saved else ""

    def save(self, folder: str | Path) -> None:
        """Keep the program in a folder that `compare.hlo`, `compare.diff` and `compare.history` read."""
        save(Path(folder), self.saved or SavedProgram(text=self.text, axes=self.axes, compiled=self.compiled))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that a reader of the table needs."""
        program_notes, strange = (
            self.saved.notes if self.saved else (),
            any(":sub" in row.axes or "?" in row.axes for row in self),
        )
        if not strange or not self.mesh or self.mesh == self.axes:
            return program_notes
        return (
            *program_notes,
            f"the program's own mesh is {format_axes(self.mesh)}, outermost first; the axes here are others",
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.rows)

    def __getitem__(self, number: int) -> Collective:
        return self.rows[number]

    @property
    def step_wire_bytes(self) -> int | None:
        """Bytes of one step, mean over devices; None if some executions are unknown."""
        amounts = [row.step_wire_bytes for row in self.rows]
        return None if None in amounts else sum(amount or 0 for amount in amounts)

    def counts(self, count: str = COUNTS[0]) -> dict[str, int | None]:
        """`{"all-reduce@tp": 2}`: how many instructions there are, or how many `executions` a step has."""
        return count_collectives(self.rows, count=count)

    def timeline(self, topology: str = "") -> "ModelledStep":
        """The modelled step: step, compute, exposed communication, the longest operations.

        topology: the TPU slice that it was compiled for, like `v6e:2x4`; by default the recorded one.  Raises
        `ValueError`, one line, where neither is known, or the two differ.
        """
        from compare.diff.own.modelled_step import ModelledStep
        from compare.user_program.step_time import model_program

        saved = self.saved or SavedProgram(text=self.text, axes=self.axes, compiled=self.compiled)
        if topology and saved.topology and topology != saved.topology:
            raise WorkError(f"the program was compiled for {saved.topology}, not for {topology}")
        module = read(saved.text)
        return ModelledStep(
            model_program(module, self.rows, topology=topology or saved.topology, axes=self.axes, names=saved.names)
        )

    def diff(self, other: "Table") -> "Differences":
        """The differences to another program's collectives."""
        matched = match(self.rows, other.rows)
        compiled = self.compiled, other.compiled
        return Differences(diff_report(matched, names=("this", "the other"), axes=self.axes, compiled=compiled))

    def to_pandas(self) -> "pd.DataFrame":
        """The public columns, one line for each collective."""
        import pandas as pd

        return pd.DataFrame([row.public() for row in self._shown], columns=list(PUBLIC))

    @property
    def _shown(self) -> tuple[Collective, ...]:
        return sort_rows(self.rows, by=self.sort)

    def __str__(self) -> str:
        return print_to_text(
            lambda out: print_rows(
                self._shown, how=compiled_text(self.compiled), notes=self.notes, each="`rows` has each", out=out
            )
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = [
            {
                **{word: INFERRED * (word in row.inferred) + text for word, text in _names(row).items()},
                "what": f"{row.kind} over {row.axes}",
                "runs": units.times_text(row.executions, row.executions_are),
                "payload": units.exact_text(row.payload_bytes),
                "wire": units.exact_text(row.wire_bytes),
                "step": units.exact_text(row.step_wire_bytes),
                "name": row.name,
                "form": row.form,
                "dtype": row.dtype,
                "line": row.line,
            }
            for row in self._shown
        ]
        total = f"{total_line(self.rows)} {compiled_text(self.compiled)}"
        legend = LEGEND if any(row.inferred for row in self.rows) else ""
        kinds = "\n".join((*kind_lines(self.rows), *training_lines(self.rows)))
        return render_html("own.html.j2", lines=lines, legend=legend, kinds=kinds, total=total, notes=self.notes)


@dataclass(frozen=True)
class Differences:
    """The differences between two programs' collectives; true if there are any."""

    found: ProgramsDiff

    def __bool__(self) -> bool:
        return not self.found["same"]

    def __len__(self) -> int:
        return len(self.found["differences"])

    def __str__(self) -> str:
        return print_to_text(lambda out: print_diff(self.found, out=out))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html("own_diff.html.j2", found=self.found, words=diff_lines)


def _names(row: Collective) -> dict[str, str]:
    return {"scope": row.scope, "op_name": path_of(row), "source_line": local_source(row.source_line or "")}


def assertion_message(surprises: Sequence[Surprise], table: Table, *, count: str) -> str:
    """The message of a failed assertion: expected and emitted counts, and the table."""
    width = max(len(surprise.word) for surprise in surprises)
    lines = [
        f"  {surprise.word:{width}}  expected {surprise.expected}, "
        f"found {'?' if surprise.found is None else surprise.found}"
        for surprise in surprises
    ]
    more = "" if count == COUNTS[0] else f" ({count} in a step)"
    return "\n".join([f"these are not the expected collectives{more}:", *lines, "", str(table)])
