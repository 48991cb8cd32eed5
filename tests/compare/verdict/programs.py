"""Collectives written by hand: what a reader would find in a program that a test describes in a line."""

from fractions import Fraction

from compare.contract.row import ContractRow
from compare.hlo.collective import Collective, Loop, Operand
from meshes.devices.mesh_spec import MeshSpec

BYTES = {"bf16": 2, "f32": 4, "s32": 4, "pred": 1, "u32": 4, "s8": 1}


def operand(
    payload,
    *,
    dtype="bf16",
    scope="?",
    parameters=(),
    constant=False,
    steers_loop=False,
    shape=None,
    **uses,
):
    """uses: what is known of its data, like `feeds_product`."""
    return Operand(
        dtype=dtype,
        shape=shape or (payload // BYTES[dtype],),
        payload_bytes=payload,
        scope=scope,
        parameters=frozenset(parameters),
        constant=constant,
        steers_loop=steers_loop,
        **uses,
    )


def collective(
    mesh, kind, axes, scope, payload=0, *, executions=1, loops=(), pairs=None, operands=None, name=None, form="sync",
    dtype="bf16", executions_are="exact", device_executions=None, in_exact_branch=False, from_parameters=True,
    reaches_root=False, scattered_by=(), parameters=(), constant=False, steers_loop=False, groups=None, part_of="",
    reducer="", **uses,
):  # fmt: skip
    """One row; `loops` are trip counts, outermost first, and multiply into the executions; `uses`: of its operand."""
    spec = MeshSpec.parse(mesh)
    parts = tuple(
        operands
        or [
            operand(
                payload,
                dtype=dtype,
                scope=scope,
                parameters=parameters,
                constant=constant,
                steers_loop=steers_loop,
                **uses,
            )
        ]
    )
    payload = sum(part.payload_bytes for part in parts)
    for trips in loops:
        executions = executions * trips
    groups = tuple(pairs or groups or ()) or spec.groups(*axes.split(","))
    sent = _sent(kind, groups, payload, num_devices=spec.num_devices)
    times = device_executions or (executions,) * spec.num_devices
    known = executions_are != "unknown"
    step = sum(n * bytes_ for n, bytes_ in zip(times, sent, strict=True)) / spec.num_devices
    return Collective(
        name=name or f"{kind}.1", kind=kind, axes=axes, network="ici", form=form, scope=scope, origin="not recorded",
        dtype="+".join(dict.fromkeys(part.dtype for part in parts)), groups=groups,
        executions=max(times) if known else None, executions_are=executions_are, payload_bytes=payload,
        wire_bytes=int(sum(sent) / spec.num_devices + Fraction(1, 2)),
        step_wire_bytes=int(step + Fraction(1, 2)) if known else None, source_line=None, operands=parts,
        loops=tuple(Loop(name=f"while.{n}", trip_count=trips) for n, trips in enumerate(loops)),
        device_executions=times if known else (), device_bytes=tuple(sent), in_exact_branch=in_exact_branch,
        from_parameters=from_parameters, reaches_root=reaches_root, gathers_result_of=None,
        scattered_by=scattered_by, line=1, text="", part_of=part_of,
        reducer=reducer,
    )  # fmt: skip


def _sent(kind, groups, payload, *, num_devices):
    """Bytes that each device sends in one execution, by the formulas of the definitions."""
    sent = [Fraction(0)] * num_devices
    for group in groups:
        n = len(group)
        if kind == "collective-permute":
            sent[group[0]] += payload if group[0] != group[1] else 0
            continue
        for device in group:
            sent[device] += Fraction((2 if kind == "all-reduce" else 1) * (n - 1) * payload, n)
    return sent


def required(scope, kind, axes, payload, wire, *, executions=1, **more):
    """A row of a contract by hand; payload, wire: bytes of one execution."""
    return ContractRow(
        scope=scope,
        kind=kind,
        axes=axes,
        executions=executions,
        payload_bytes=payload,
        wire_bytes=wire,
        step_wire_bytes=wire * executions,
        **more,
    )


def roles(**named):
    """`roles(weight=(1, 2), cache=(5,))` -> parameter number -> role."""
    return {number: role for role, numbers in named.items() for number in numbers}
