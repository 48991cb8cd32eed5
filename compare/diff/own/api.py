"""One's own program in Python: `from compare import collectives, assert_collectives, judge` (docs/own_program.md)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from compare.contract.row import TABLES, ContractRow
from compare.contract.weight_rows import DATA
from compare.diff.own.case_contract import CaseContract, contract_rows
from compare.diff.own.expected import COUNTS, find_surprises
from compare.diff.own.program_verdict import ProgramVerdict, judge_program
from compare.diff.own.table import Table, assertion_message
from compare.hlo.collective import ORDERS, sort_rows
from compare.hlo.devices.axes import read_axes, validate_axes
from compare.hlo.text.errors import HloError
from compare.hlo.text.metadata import SourceNames
from compare.render.units import count_text
from compare.user_program.read_program import open_program, read_all
from compare.user_program.saved_program import SavedProgram
from compare.user_program.split_weights import list_split_weights
from meshes.mesh_argument import read_mesh

__all__ = ["assert_collectives", "collectives", "contract_rows", "judge"]


def collectives(
    program: object,
    *,
    axes: Mapping[str, int] | str | None = None,
    mesh: str = "",
    topology: str = "",
    scopes: Mapping[str, str] | None = None,
    owns: str | Iterable[str] = (),
    sort: str = ORDERS[0],
    try_remedies: bool = True,
) -> Table:
    """The collectives of a program, as a table that a notebook shows.

    program: a JAX `Lowered` or `Compiled` (anything with `.compile().as_text()` or `.as_text()`), HLO or StableHLO
        text, module bytes (StableHLO bytecode, HLO protocol buffers, gzipped or not), or a path.
    axes: sizes by name, outermost first, `{"data": 2, "tensor": 4}` or `"data=2,tensor=4"`; or `mesh`, like `tp4pp2`.
        None: the axes of the program's mesh, if it records that (JAX's do).
    topology: compile for this TPU (`v5e:2x4`), which need not be present, by libtpu in a separate process.  Without it,
        JAX compiles what it lowered for its devices; other programs are compiled for the smallest v5e slice.
    scopes: regular expression, searched in `op_name` -> scope, `{"o_proj": "layer.attention.out"}`; the first match
        counts.  Without it, only this project's scope names are recognised.
    owns: parts of paths of installed files that count as the user's source, like `transformers/models/`.
    sort: the order in which rows are shown: of the `program`, or those with most bytes of a `step` first.
    try_remedies: where a note says what to write instead, and libtpu compiles the program here, compile it with the
        remedy, too, if that can be written into it, and say what it sends then.
    Raises `ValueError`, one line, if it cannot be parsed or compiled, or has other axes; `OSError` if it is no file.
    """
    sort_rows((), by=sort)
    sizes, names = _axes(axes, mesh), SourceNames.of(scopes, owns)
    (reading,) = read_all(
        [open_program(program, topology=topology)],
        axes=sizes,
        topology=topology,
        names=names,
        try_remedies=try_remedies,
    )
    return Table(reading.rows, reading.saved.axes, reading.compiled, reading.saved, dict(reading.mesh), sort)


def assert_collectives(
    program: object,
    expected: Mapping[str, int],
    *,
    axes: Mapping[str, int] | str | None = None,
    mesh: str = "",
    topology: str = "",
    count: str = COUNTS[0],
) -> None:
    """Raise `AssertionError` unless the program emits exactly these: `assert_collectives(table, {"all-reduce@tp": 2})`.

    program: a table, or what `collectives` takes, with its axes.
    expected: collectives not named must be absent; `{}` is a program without communication.
    count: `instructions` of the program, or their `executions` in a step, loops counted.
    """
    table = program if isinstance(program, Table) else collectives(program, axes=axes, mesh=mesh, topology=topology)
    surprises = find_surprises(table.rows, expected, axes=table.axes, count=count)
    if surprises:
        raise AssertionError(assertion_message(surprises, table, count=count))


def judge(
    program: object,
    contract: CaseContract | Sequence[ContractRow],
    *,
    scopes: Mapping[str, str] | None = None,
    roles: Mapping[str | int, str] | None = None,
    axes: Mapping[str, int] | str | None = None,
    mesh: str = "",
    topology: str = "",
) -> ProgramVerdict:
    """The verdict on each collective of a program: `judge(table, contract_rows("dp2tp4"), scopes={…})`.

    program: a table, or what `collectives` takes, with its axes; by default the axes of a case's contract.
    contract: of a case, or `ContractRow`s written by hand, over the program's axes.
    scopes: as in `collectives`; by default those that the table was read with.
    roles: regular expression, searched in the name of a parameter, or its number -> `weight`, `cache` or `input`,
        `{"^weights": "weight", "^caches": "cache"}`; the first match counts.  Of the others, those that are donated
        count as caches, other floats as weights; what is computed from weights alone is known of named ones only.
    Raises `ValueError`, one line, if the contract has other axes, or the map has scopes that no contract has.
    """
    of_case = contract.axes if isinstance(contract, CaseContract) else {}
    if isinstance(program, Table):
        if axes or mesh or topology:
            raise HloError("a table has its axes; axes, mesh and topology are for programs that are still to be read")
        table = program
    else:
        table = collectives(program, axes=axes if axes or mesh else of_case or None, mesh=mesh, topology=topology)
    saved = table.saved or SavedProgram(text=table.text, axes=table.axes)
    saved = replace(saved, names=SourceNames.of(scopes).fill_from(saved.names))
    split = list_split_weights(saved, saved.axes)
    if isinstance(contract, CaseContract):
        contract, notes = _add_split_weights(contract, saved, split)
        return judge_program(replace(saved, notes=(*saved.notes, *notes)), contract, axes=of_case, roles=roles)
    verdict = judge_program(saved, contract, axes=of_case, roles=roles)
    gathered = {row.collective.axes for row in verdict if "weight-gather" in row.causes} & set(split)
    axes_of_rows = {axis for row in verdict.contract for axis in row.axes.split(",")}
    notes = [_note_of_rows(axis, len(split[axis])) for axis in sorted(gathered - axes_of_rows)]
    return replace(verdict, notes=(*verdict.notes, *notes))


def _add_split_weights(
    contract: CaseContract, program: SavedProgram, split: Mapping[str, Sequence[int]]
) -> tuple[CaseContract, list[str]]:
    """The contract with rows for the weights, where the program keeps them split over dp, and a note that says so."""
    own = {axis: size for axis, size in program.axes.items() if size > 1}
    if contract.weights_over or contract.axes != own or not split.get(DATA):
        return contract, []
    longer = contract.with_weights_over(DATA)
    kept = (row for row in longer if not row.of_weights or row.scope not in TABLES or row.payload_bytes in split[DATA])
    count = count_text(len(split[DATA]), "weight")
    note = f"the program keeps {count} split over {DATA}, to store less of them: the contract has the gathers that use "
    note += f"them, as contract_rows(…, weights_over={DATA!r}) has"
    return replace(longer, rows=tuple(kept)), [note]


def _note_of_rows(axis: str, count: int) -> str:
    return (
        f"the program keeps {count_text(count, 'weight')} split over {axis}, where the contract requires nothing: if "
        f"that is to store less of them (FSDP), their gathers are needed, and the remedy of weight-gather is none; "
        f"give a ContractRow(…, axes={axis!r}, of_weights=True), or contract_rows(…, weights_over={axis!r})"
    )


def _axes(axes: Mapping[str, int] | str | None, mesh: str) -> Mapping[str, int]:
    if mesh and axes:
        raise HloError(f"the axes are named twice, by axes={axes!r} and by mesh={mesh!r}")
    if mesh:
        plan = read_mesh(mesh).mesh
        return plan.split_axes or plan.axes
    return read_axes(axes) if axes is None or isinstance(axes, str) else validate_axes(axes)
