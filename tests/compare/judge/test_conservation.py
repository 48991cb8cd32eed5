"""Bytes are conserved, as integers, whatever program and contract come along."""

from hypothesis import given, settings
from hypothesis import strategies as st

from compare.judge.contract import ContractRow
from compare.judge.verdict import judge
from meshes.spec import MeshSpec
from tests.compare.judge.programs import collective, operand

MESH = "dp2pp2tp2"
SCOPES = st.sampled_from(["embed", "layer.mlp.down", "pipeline.shift", "sample", "?"])
KINDS = st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"])
AXES = st.sampled_from(["dp", "pp", "tp", "pp,tp", "dp,pp,tp"])
DTYPES = st.sampled_from(["bf16", "f32", "s32", "pred"])

operands = st.builds(
    lambda size, dtype, scope, parameters, constant: operand(
        size * 4, dtype=dtype, scope=scope, parameters=parameters, constant=constant
    ),
    st.integers(0, 300), DTYPES, SCOPES, st.sets(st.integers(0, 3)), st.booleans(),
)  # fmt: skip


@st.composite
def rows(draw):
    kind = draw(KINDS)
    pairs = None
    if kind == "collective-permute":
        pairs = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=8,
                              unique_by=(lambda p: p[0], lambda p: p[1])))  # fmt: skip
    return collective(
        MESH, kind, draw(AXES), draw(SCOPES), operands=draw(st.lists(operands, min_size=1, max_size=3)), pairs=pairs,
        loops=draw(st.lists(st.integers(1, 7), max_size=2)), form=draw(st.sampled_from(["sync", "windowed-einsum"])),
        executions_are=draw(st.sampled_from(["exact", "exact", "upper-bound", "unknown"])),
        in_exact_branch=draw(st.booleans()), reaches_root=draw(st.booleans()),
    )  # fmt: skip


contracts = st.lists(
    st.builds(
        lambda scope, kind, axes, step, carries, idle, devices: ContractRow(
            scope=scope, kind=kind, axes=axes, executions=1, payload_bytes=step + 1, wire_bytes=step,
            step_wire_bytes=step, carries=carries, ticks=4 + idle, idle_ticks=idle, devices=devices,
        ),
        SCOPES, KINDS, st.sampled_from(["dp", "pp", "tp"]), st.integers(0, 4000),
        st.sampled_from(["floats", "integers", "both"]), st.integers(0, 1),
        st.one_of(st.none(), st.frozensets(st.integers(0, 7), min_size=1)),
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(rows(), max_size=6), contracts)
def test_every_byte_is_inherent_inflated_or_induced_and_what_is_served_is_inherent(program, contract):
    found = judge(program, contract, axes=MeshSpec.parse(MESH).split_axes)
    for verdict in found.verdicts:
        if verdict.collective.executions is None:
            assert verdict.inherent_bytes is None
            continue
        parts = (verdict.inherent_bytes, verdict.inflated_bytes, verdict.induced_bytes)
        assert min(parts) >= 0
        assert sum(parts) == verdict.collective.step_wire_bytes
        assert sum(verdict.causes.values()) == verdict.inflated_bytes + verdict.induced_bytes
        assert all(amount > 0 for amount in verdict.causes.values())
    assert sum(found.served_bytes) == sum(verdict.inherent_bytes or 0 for verdict in found.verdicts)
    assert all(0 <= served <= row.step_wire_bytes for served, row in zip(found.served_bytes, contract, strict=True))
