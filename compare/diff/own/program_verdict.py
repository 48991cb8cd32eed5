"""The verdict on a user's program: the verdict on each collective, and the unserved bytes of the contract."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from compare.contract.row import ContractRow, JudgeError
from compare.diff.own.show import print_to_text, render_html
from compare.hlo.collective import COLLECTIVE_KINDS, PUBLIC, Collective
from compare.hlo.scope_key import path_of
from compare.render import units
from compare.render.collectives_table import local_source, mark_inferred, short_source, told_apart
from compare.report.grouping import largest_first, sum_by
from compare.report.rows import sum_totals
from compare.user_program.judge_saved import judge_saved
from compare.user_program.program_mesh import format_axes
from compare.user_program.saved_program import SavedProgram
from compare.verdict.causes import INDUCED, INFLATED, describe_cause
from compare.verdict.verdict import Judgement, Verdict
from meshes.process.one_line import one_line, plain
from meshes.scopes import SCOPES

if TYPE_CHECKING:
    import pandas as pd  # takes longer to load than a program takes to read

NO_SCOPE = "?"
BYTES = ("inherent_bytes", "inflated_bytes", "induced_bytes")
COUNTS = ("executions", "payload_bytes", "wire_bytes", "step_wire_bytes", "float_bytes", "integer_bytes")
"""The integer fields of a contract row."""
TOTALS = (
    "wire_bytes",
    "inherent",
    "inflated",
    "induced",
    "missing",
    "unserved",
    "unknown_rows",
    "upper_bound_rows",
)
"""The totals of `report.json` that a single program has."""


@dataclass(frozen=True)
class ProgramVerdict:
    """A program's collectives, in its order, each with its verdict (`docs/definitions.md`, section 4)."""

    contract: tuple[ContractRow, ...]
    judgement: Judgement
    axes: Mapping[str, int]
    has_map: bool = False
    """Whether the program was read with a scope map."""
    notes: tuple[str, ...] = field(default=())
    """Notes on the program."""

    @property
    def rows(self) -> tuple[Verdict, ...]:
        """Each has its `collective`, `inherent_bytes`, `inflated_bytes`, `induced_bytes`, `causes` and `serves`."""
        return self.judgement.verdicts

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.rows)

    def __getitem__(self, number: int) -> Verdict:
        return self.rows[number]

    @property
    def totals(self) -> dict[str, int]:
        """Bytes of one step, mean over devices, as in report.json; `required` are those of the whole contract."""
        sums = asdict(sum_totals(self.judgement, self.contract))
        required = sum(row.step_wire_bytes for row in self.contract)
        return {"required": required, **{name: sums[name] for name in TOTALS}}

    @property
    def emitted_over_inherent(self) -> float | None:
        """Bytes on the wire by byte that the contract requires; None where it requires none, or not all is known."""
        totals = self.totals
        known = totals["required"] and not totals["unknown_rows"]
        return totals["wire_bytes"] / totals["required"] if known else None

    @property
    def unserved(self) -> tuple[tuple[ContractRow, int | None], ...]:
        """The rows of the contract that are not served in full, and their unserved bytes.

        None: unknown, since a collective with unknown executions serves the row.
        """
        pairs = zip(self.contract, self.judgement.served_bytes, strict=True)
        return tuple(
            (row, None if number in self.judgement.uncounted else row.step_wire_bytes - served)
            for number, (row, served) in enumerate(pairs)
            if number in self.judgement.uncounted or served < row.step_wire_bytes
        )

    @property
    def without_scope(self) -> tuple[Collective, ...]:
        """The collectives with an operand without a scope, which therefore serves no row."""
        return tuple(
            row.collective for row in self.rows if any(part.scope == NO_SCOPE for part in row.collective.operands)
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The public columns of the collectives, their bytes by verdict, the causes, and the scopes they serve."""
        import pandas as pd

        lines = [
            row.collective.public()
            | {name: getattr(row, name) for name in BYTES}
            | {"causes": dict(row.causes), "serves": [self.contract[number].scope for number in row.serves]}
            for row in self.rows
        ]
        return pd.DataFrame(lines, columns=[*PUBLIC, *BYTES, "causes", "serves"])

    def lines(self) -> list[str]:
        """The lines below the table: totals, unserved rows, causes and notes."""
        return [*self._sum_lines(), *self._cause_lines(), *self._note_lines()]

    def _sum_lines(self) -> Iterator[str]:
        totals = self.totals
        least = "at least " if totals["unknown_rows"] else "at most " if totals["upper_bound_rows"] else ""
        parts = ", ".join(f"{units.exact_text(totals[name])} {name}" for name in ("inherent", "inflated", "induced"))
        yield f"Emitted {least}{units.exact_text(totals['wire_bytes'])} a step, mean over devices: {parts}."
        ratio = self.emitted_over_inherent
        words = "" if ratio is None else f": emitted ÷ inherent {units.ratio_text(ratio)}"
        yield f"The contract requires {units.exact_text(totals['required'])}{words}."
        if totals["unknown_rows"]:
            yield f"{units.count_text(totals['unknown_rows'], 'collective')} in loops whose count can't be read."
        yield from map(_unserved_line, self.unserved)

    def _cause_lines(self) -> Iterator[str]:
        causes = ((row, *cause) for row in self.rows for cause in row.causes.items())
        sums = sum_by(((_is_induced(row, cause), cause), amount) for row, cause, amount in causes)
        for (induced, cause), amount in largest_first(sums).items():
            words = describe_cause(cause, induced=induced, axes=self.axes)
            verdict = "induced" if induced else "inflated"
            yield f"{cause}, {verdict}, {units.exact_text(amount)}: {words.sentence}. Remedy: {words.remedy}."

    def _note_lines(self) -> Iterator[str]:
        yield from (f"Note: {plain(note)}." for note in self.notes)
        if count := len(self.without_scope):
            have = "collective has no scope, and serves" if count == 1 else "collectives have no scope, and serve"
            example = next((row.op_name for row in self.without_scope if row.op_name), "")
            names = f" (op_name {one_line(example, most=120)!r})" if example else ""
            ask = "the scope map has no pattern for" if self.has_map else "give a scope map, {pattern: scope}, for"
            yield f"Note: {count} {have} no row of the contract: {ask} their op_name{names}."

    def __str__(self) -> str:
        return print_to_text(self._print)

    __repr__ = __str__

    def _print(self, out: Console) -> None:
        grid = Grid(box=None, pad_edge=False, padding=(0, 1))
        for number, heading in enumerate(("scope", "collective\nsource", "count", "step", "what for")):
            grid.add_column(heading, justify="right" if number in (2, 3) else "left", overflow="fold")
        for row in self.rows:
            collective = row.collective
            name = plain(mark_inferred(collective, "scope", collective.scope))
            path = mark_inferred(collective, "op_name", path_of(collective)) if collective.scope == NO_SCOPE else ""
            where = Text(name + (f"\n{plain(path)}" if path else ""))
            source = mark_inferred(collective, "source_line", short_source(collective.source_line or ""))
            lines = [f"{collective.kind} over {collective.axes}", source or collective.name, *told_apart(collective)]
            what = Text("\n".join(map(plain, lines)))
            grid.add_row(
                where,
                what,
                units.times_text(collective.executions, collective.executions_are),
                units.exact_text(collective.step_wire_bytes),
                "\n".join(_purposes(row)),
            )
        out.print(grid)
        for line in self._sum_lines():
            out.print(Text(line), soft_wrap=True)
        for line in (*self._cause_lines(), *self._note_lines()):
            out.print(Text(line))

    def _repr_html_(self) -> str:
        lines = [
            {
                "scope": mark_inferred(row.collective, "scope", row.collective.scope),
                "op_name": mark_inferred(row.collective, "op_name", path_of(row.collective)),
                "what": f"{row.collective.kind} over {row.collective.axes}",
                "name": row.collective.name,
                "runs": units.times_text(row.collective.executions, row.collective.executions_are),
                "step": units.exact_text(row.collective.step_wire_bytes),
                "purposes": _purposes(row),
                "source_line": mark_inferred(
                    row.collective, "source_line", local_source(row.collective.source_line or "")
                ),
            }
            for row in self.rows
        ]
        return render_html("own_verdict.html.j2", lines=lines, below=self.lines())


def judge_program(
    program: SavedProgram,
    contract: Iterable[ContractRow],
    *,
    axes: Mapping[str, int],
    roles: Mapping[str | int, str] | None = None,
) -> ProgramVerdict:
    """Judge a program by contract rows over its axes.

    axes: those of a case's contract; empty for rows written by hand.
    roles: of its parameters, by pattern of their name or by number.
    Raises `JudgeError` for rows that no program with these axes could serve.
    """
    rows = _check_rows(contract)
    split_axes = {axis: size for axis, size in program.axes.items() if size > 1}
    if axes and list(axes.items()) != list(split_axes.items()):
        raise JudgeError(
            f"the contract is of the axes {format_axes(axes)}, and the program was read with "
            f"{format_axes(split_axes) or 'none'}; read it with axes={dict(axes)!r}"
        )
    _check_axes(rows, program.axes)
    _check_scopes(rows, program.names.scope_map)
    judged = judge_saved(program, rows, roles=roles)
    notes = (*program.notes, *judged.notes)
    return ProgramVerdict(rows, judged.judgement, program.axes, bool(program.names.scopes), notes)


def _check_rows(contract: Iterable[ContractRow]) -> tuple[ContractRow, ...]:
    try:
        rows = tuple(contract)
    except TypeError:
        raise JudgeError(
            f"a contract is rows, like those of contract_rows('dp2tp4'), and no {type(contract).__name__}"
        ) from (None)
    for number, row in enumerate(rows):
        if not isinstance(row, ContractRow):
            raise JudgeError(f"row {number} of the contract is {row!r}, and no ContractRow")
        if row.kind not in COLLECTIVE_KINDS:
            raise JudgeError(
                f"row {number} of the contract has the kind {row.kind!r}; kinds are {', '.join(COLLECTIVE_KINDS)}"
            )
        if not isinstance(row.scope, str) or row.scope in ("", NO_SCOPE):
            raise JudgeError(f"row {number} of the contract has the scope {row.scope!r}; name the part of the model")
        if not isinstance(row.axes, str):
            raise JudgeError(f"row {number} of the contract is over {row.axes!r}; write axes like 'data,tensor'")
        for name in COUNTS:
            if type(amount := getattr(row, name)) is not int or amount < 0:
                raise JudgeError(f"row {number} of the contract has the {name} {amount!r}; write a whole number")
    return rows


def _check_axes(rows: Sequence[ContractRow], axes: Mapping[str, int]) -> None:
    order = list(axes)
    for number, row in enumerate(rows):
        names = row.axes.split(",")
        if any(name not in axes for name in names) or names != sorted(set(names), key=order.index):
            known = format_axes(axes) or "none; read it with axes={'data': 2, 'tensor': 4}"
            raise JudgeError(
                f"row {number} of the contract is over {row.axes!r}; the axes of the program, outermost first, are "
                f"{known}"
            )


def _check_scopes(rows: Sequence[ContractRow], scopes: Mapping[str, str]) -> None:
    """Raise `JudgeError` for an unknown scope in a map: it would silently serve nothing."""
    known = {*SCOPES, *(row.scope for row in rows)}
    for pattern, scope in scopes.items():
        if scope not in known:
            like = get_close_matches(scope, sorted(known), n=1)
            meant = f"; did you mean {like[0]!r}?" if like else f"; there are {', '.join(sorted(known))}"
            raise JudgeError(f"the scope map has {pattern!r}: {scope!r}, which is no scope of a contract{meant}")


def _is_induced(row: Verdict, cause: str) -> bool:
    """Whether a cause is induced.  `other` is in both tables: it is induced if the collective serves nothing."""
    names = {entry.name for entry in INDUCED}
    return cause in names and (not row.serves or cause not in {entry.name for entry in INFLATED})


def _purposes(row: Verdict) -> list[str]:
    """Its bytes by verdict and cause, in words."""
    if row.inherent_bytes is None:
        return ["unknown"]
    inherent = [f"{units.exact_text(row.inherent_bytes)} inherent"] * bool(row.inherent_bytes)
    more = [
        f"{units.exact_text(amount)} {'induced' if _is_induced(row, cause) else 'inflated'}, {cause}"
        for cause, amount in row.causes.items()
    ]
    return [*inherent, *more] or ["nothing: 0 B"]


def _unserved_line(entry: tuple[ContractRow, int | None]) -> str:
    row, amount = entry
    words = f"{plain(row.kind)} over {plain(row.axes)} of {plain(row.scope)}, {row.executions:,} ×"
    if amount is None:
        return f"How many bytes serve {words} is unknown: a loop's trip count can't be read."
    if amount == row.step_wire_bytes:
        return f"Nothing serves {words}: {units.exact_text(amount)}."
    return f"{units.exact_text(amount)} of {units.exact_text(row.step_wire_bytes)} are unserved of {words}."
