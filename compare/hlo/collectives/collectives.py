"""The collectives of a program, one row each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compare.hlo.collective import NOT_RECORDED, Collective, ExpectedCollective, Operand
from compare.hlo.collectives.completeness import check_completeness
from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.execution_counts import Site, collective_instructions, count_executions
from compare.hlo.devices.axes import Mesh, SlicePart, axes_of_part, find_slice_parts
from compare.hlo.devices.groups import DeviceNumbering, Groups, groups_of, largest_id
from compare.hlo.emission import megascale
from compare.hlo.emission.emission_form import find_chain_starts, form_of, kind_of, reducer_of
from compare.hlo.emission.payload import (
    carried_arrays,
    operands_of_arrays,
    round_half_up,
    sent_bytes,
    total_bytes,
    window_bytes,
)
from compare.hlo.emission.verifier import check_attributes, check_shapes
from compare.hlo.provenance.provenance import Names, Provenance
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.metadata import Frame, SourceNames
from compare.hlo.text.module import Module, pause_gc
from compare.hlo.text.shapes import Array

MOST_PLACES = 1 << 24
"""Limit on collectives × devices: a row has an entry for each device."""
_SUMS = ("all-reduce", "reduce-scatter")


@pause_gc()
def collectives(
    module: Module,
    axes: Mapping[str, int],
    *,
    contract: Sequence[ExpectedCollective] = (),
    caches: frozenset[int] | None = None,
    weights: frozenset[int] = frozenset(),
    device_ids: Sequence[int] = (),
    names: SourceNames | None = None,
) -> list[Collective]:
    """The rows, in the order in which ENTRY's schedule reaches the start of each.

    axes: sizes by name, outermost first; none, and every row's axes read `?`.
    contract: the rows to compare the program with.  A permute's lost scope is one that has a row of its axes,
        and so is one of several that XLA has joined in one name; where partial sums are to be added up, gathers are
        looked at more closely (`Operand.feeds_product`, `Collective.scattered_by`).
    caches: the ENTRY parameters that are caches; without it, those whose memory an output takes over.
    weights: those that are weights, where that is known (`Operand.of_weights`).
    device_ids: of several slices, the runtime's id of each device of the mesh (see `Program.ids`).
    names: of somebody else's program, what its scopes are and which packages are the user's.
    HloError: names the first line that cannot be read, or what is missing; no collective is skipped.
    """
    check_completeness(module)
    program, mesh = _devices(module, axes, device_ids)
    slice_parts = find_slice_parts(mesh, [at for at, _ in program.places]) if program.slices > 1 and axes else {}
    sites = count_executions(module, Evaluator(program))
    receives = megascale.pair_transfers(site.item for site in sites)
    parts = find_chain_starts(sites)
    rows = [site for site in sites if _is_row(site.item) and site.item not in parts]
    if len(rows) * program.num_devices > MOST_PLACES:
        raise HloError(f"{len(rows)} collectives on {program.num_devices} devices are more than can be read")
    belongs = parts | {receive: send for send, receive in receives.items()}
    parameters = module.aliased_parameters if caches is None else caches
    flow = Provenance(module, parts=belongs, caches=parameters, weights=weights, names=names)
    named = [
        _row(
            site,
            receives.get(site.item),
            program=program,
            mesh=mesh,
            slice_parts=slice_parts,
            flow=flow,
            contract=contract,
        )
        for site in rows
    ]
    callers = tell_apart([names.stack for _, names in named])
    collectives_of_rows = [replace(row, caller=caller) for (row, _), caller in zip(named, callers, strict=True)]
    return _with_scatters(list(zip(rows, collectives_of_rows, strict=True)), flow, contract)


def _with_scatters(
    rows: Sequence[tuple[Site, Collective]], flow: Provenance, contract: Sequence[ExpectedCollective]
) -> list[Collective]:
    """The same rows; a gather over the axes of a contract all-reduce gets the scatters that it may complete.

    So does a permute over the axes of any sum: in a ring, several are the scatter or the gather together.
    """
    completed = []
    summed = {expected.axes: expected.kind for expected in contract if expected.kind in _SUMS}
    summed |= {expected.axes: expected.kind for expected in contract if expected.kind == "all-reduce"}
    scatters = {axes: {site.item for site, row in rows if row.axes == axes and _scatters(row)} for axes in summed}
    for site, row in rows:
        may_complete = (row.kind, summed.get(row.axes)) == ("all-gather", "all-reduce")
        of_axes = scatters.get(row.axes) if may_complete or row.kind == "collective-permute" else None
        completed.append(replace(row, scattered_by=flow.scattered_by(site, of_axes)) if of_axes else row)
    return completed


def _scatters(row: Collective) -> bool:
    """Whether it may scatter a sum; an all-to-all may only change a layout, which the verdict tells apart."""
    is_part = row.kind == "collective-permute" and any(operand.added_up for operand in row.operands)
    return row.kind in ("reduce-scatter", "all-to-all") or row.form == "windowed-einsum" or is_part


def _devices(module: Module, axes: Mapping[str, int], ids: Sequence[int]) -> tuple[DeviceNumbering, Mesh]:
    """Device numbering and mesh, from the header and the axes; without either, from the ids in the text."""
    in_program = module.num_devices
    items = [] if axes and in_program else collective_instructions(module)
    slices = max((megascale.count_slices(item) for item in items), default=1)
    if in_program is None:
        largest = 0 if axes else max((max(largest_id(item), megascale.largest_id(item)) for item in items), default=0)
        mesh = Mesh.of(axes, in_program=None, largest_id=(largest + 1) * slices - 1)
        in_slice, left = divmod(mesh.num_devices, slices)
        each, of = (mesh.num_devices, 1) if left else (in_slice, slices)
        return DeviceNumbering(1, each, of, is_counted=False), mesh
    mesh = Mesh.of(axes, in_program=in_program if axes else in_program * slices, largest_id=0)
    slices = mesh.num_devices // in_program
    return DeviceNumbering(module.replica_count, module.num_partitions, slices, tuple(ids) if slices > 1 else ()), mesh


def _is_row(item: Instruction) -> bool:
    """True for an instruction that is a row: not for a receive (part of its send) or a host transfer."""
    return item.opcode != "recv" and (item.opcode != "send" or megascale.is_wire(item))


def _row(
    site: Site,
    receive: Instruction | None,
    *,
    program: DeviceNumbering,
    mesh: Mesh,
    slice_parts: dict[SlicePart, str],
    flow: Provenance,
    contract: Sequence[ExpectedCollective],
) -> tuple[Collective, Names]:
    item = site.item
    frame = site.frames[0] if site.frames else None
    kind = megascale.kind_of(item) if item.opcode == "send" else kind_of(item)
    groups, wide = _groups(item, kind, program)
    axes = mesh.axes_of_pairs(wide) if kind == "collective-permute" else mesh.axes_of_groups(wide)
    arrays = carried_arrays(item, kind, receive)
    windows = window_bytes(item, arrays)
    payload, of_pair = list(map(sum, windows)), tuple(map(sum, zip(*windows, strict=True)))
    sent = sent_bytes(kind, wide, sum(payload), program.num_devices, windows=of_pair)
    known = site.executions_are != "unknown"
    once = total_bytes(sent, (1,) * program.num_devices)
    runs = set(site.device_executions)
    step = once * runs.pop() if len(runs) == 1 else total_bytes(sent, site.device_executions) if known else None
    ragged = kind == "ragged-all-to-all" and site.executions_are == "exact"
    part = "" if kind == "collective-permute" else axes_of_part(wide, slice_parts)
    contract_scopes = frozenset(entry.scope for entry in contract if entry.axes == (part or axes))
    wanted = contract_scopes if kind == "collective-permute" else frozenset()
    scope = flow.scope(site, wanted, joined=contract_scopes)
    form = form_of(item, frame, kind=kind, pairs=wide, mesh=mesh)
    expected = [entry for entry in contract if entry.axes == axes]
    sums = frozenset(entry.scope for entry in expected if entry.kind in _SUMS)
    names = flow.names(site, kind=kind, scope=scope)
    row = Collective(
        name=item.name,
        kind=kind,
        axes=axes,
        network="dcn" if megascale.is_megascale(item) else "ici",
        form=form,
        scope=scope,
        origin=NOT_RECORDED,
        dtype="+".join(dict.fromkeys(array.dtype for array in arrays)),
        groups=groups,
        executions=max(site.device_executions, default=0) if known else None,
        # How many tokens go where is data: the payload of a ragged exchange is the most that it can move.
        executions_are="upper-bound" if ragged else site.executions_are,
        payload_bytes=sum(payload),
        wire_bytes=round_half_up(once / program.num_devices),
        step_wire_bytes=None if step is None else round_half_up(step / program.num_devices),
        source_line=names.source_line,
        operands=_operands(
            site,
            arrays,
            payload,
            flow,
            kind=kind,
            scope=scope,
            wanted=wanted,
            sums=sums,
            has_rows=bool(expected),
            gathers=kind in ("all-gather", "all-reduce") or form == "windowed-einsum",
            members=max(map(len, wide), default=1),
        ),
        loops=site.loops,
        device_executions=site.device_executions,
        device_bytes=sent,
        in_exact_branch=site.in_exact_branch,
        from_parameters=flow.from_parameters(site),
        reaches_root=flow.reaches_root(site),
        gathers_result_of=flow.gathers(site) if kind == "all-gather" else None,
        reducer=reducer_of(item) if kind in _SUMS else "",
        part_of=part,
        mesh_groups=wide,
        op_name=names.op_name,
        inferred=names.inferred,
        line=item.line,
        text=item.text.strip(),
    )
    return row, names


def _operands(
    site: Site,
    arrays: list[Array],
    payload: list[int],
    flow: Provenance,
    *,
    kind: str,
    scope: str,
    wanted: frozenset[str],
    sums: frozenset[str],
    has_rows: bool,
    gathers: bool,
    members: int,
) -> tuple[Operand, ...]:
    """sums: the scopes in which the contract has a sum over the row's axes; has_rows: whether it has any row over them.

    gathers: whether it may be a gather of a product's operand, which does not replace the sum of partial products.
    """
    operands: list[Operand] = []
    # Of the result: a permute brings one part, and so does each array of an all-to-all of several.
    parts = {"collective-permute": 1, "all-to-all": max(members // max(len(arrays), 1), 1)}.get(kind, members)
    for number, array, size in zip(operands_of_arrays(site.item, len(arrays)), arrays, payload, strict=True):
        provenance = flow.operand(site, number, scope=scope if len(arrays) == 1 else None, wanted=wanted)
        in_sum = provenance.scope in sums
        op_name, source_line = flow.names_of_part(site, number) if len(arrays) > 1 else ("", None)
        operands.append(
            Operand(
                dtype=array.dtype,
                shape=array.dims,
                payload_bytes=size,
                scope=provenance.scope,
                parameters=provenance.parameters,
                constant=provenance.constant,
                steers_loop=provenance.steers_loop,
                of_weights=flow.is_of_weights(site, number),
                feeds_product=in_sum and gathers and flow.feeds_product(site, number, provenance.scope, kind=kind),
                zero_elsewhere=has_rows and kind == "all-reduce" and flow.zero_elsewhere(site, number),
                added_up=in_sum and flow.is_added_up(site, number, provenance.scope, kind=kind, parts=parts),
                steps_to_end=flow.steps_to_end(site, number, provenance.scope) if in_sum and kind in _SUMS else None,
                earlier_hops=flow.earlier_hops(site, number) if has_rows and kind == "collective-permute" else 0,
                arguments=flow.name_arguments(provenance.parameters),
                op_name=op_name,
                source_line=source_line,
            )
        )
    return tuple(operands)


def _groups(item: Instruction, kind: str, program: DeviceNumbering) -> tuple[Groups, Groups]:
    """The groups as the row shows them, and as device ids of the whole mesh."""
    if item.opcode == "send":
        groups = megascale.groups_of(item, program)
        return groups, groups
    check_attributes(item)
    groups = groups_of(item, kind, program)
    check_shapes(item, groups, is_counted=program.is_counted)
    return groups, program.repeat_in_slices(groups)


Stack = tuple[Frame, ...]


def tell_apart(stacks: Sequence[Stack]) -> list[str | None]:
    """For each stack (innermost frame first) the innermost call that tells it from the others of the same source line,
    as `model.py:31, Attention.out_projection`; None where all others of its line have the same stack."""
    callers: list[str | None] = [None] * len(stacks)
    lines: dict[Frame, list[int]] = {}
    for at, stack in enumerate(stacks):
        if stack:
            lines.setdefault(stack[0], []).append(at)
    for members in lines.values():
        _part(stacks, members, depth=1, callers=callers)
    return callers


def _part(stacks: Sequence[Stack], members: list[int], *, depth: int, callers: list[str | None]) -> None:
    """The members, whose stacks are the same below `depth`, by the first frame that differs; each part further."""
    if len({stacks[at] for at in members}) == 1:
        return
    parts: dict[Frame | None, list[int]] = {}
    for at in members:
        frame = stacks[at][depth] if depth < len(stacks[at]) else None
        parts.setdefault(frame, []).append(at)
    for frame, part in parts.items():
        if frame is not None and len(parts) > 1:
            for at in part:
                callers[at] = ", ".join(filter(None, (frame.place, frame.function)))
        _part(stacks, part, depth=depth + 1, callers=callers)
