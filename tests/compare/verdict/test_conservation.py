"""Bytes are conserved, as integers, whatever program and contract come along."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.contract.row import ContractRow
from tests.compare.verdict.programs import collective, operand
from tests.compare.verdict.test_verdict import judge_rows

MESHES = {"dp2pp2tp2": ["dp", "pp", "tp", "pp,tp", "dp,pp,tp"], "cp2ep2tp2": ["cp", "ep", "tp", "ep,tp", "cp,ep,tp"]}
SCOPES = st.sampled_from(
    ["embed", "layer.mlp.down", "layer.attention.core", "layer.moe.dispatch", "pipeline.shift", "head", "sample", "?"]
)
KINDS = st.sampled_from(
    ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"]
)
DTYPES = st.sampled_from(["bf16", "f32", "s32", "pred"])

operands = st.builds(
    lambda size, dtype, scope, parameters, constant, **uses: operand(
        size * 4, dtype=dtype, scope=scope, parameters=parameters, constant=constant, **uses
    ),
    st.one_of(st.sampled_from([8, 16, 64]), st.integers(0, 300)),
    DTYPES,
    SCOPES,
    st.sets(st.integers(0, 3)),
    st.booleans(),
    added_up=st.booleans(),
    zero_elsewhere=st.booleans(),
    steps_to_end=st.one_of(st.none(), st.integers(1, 9)),
    earlier_hops=st.one_of(st.none(), st.integers(0, 3)),
)


@st.composite
def rows(draw, mesh):
    kind = draw(KINDS)
    pairs = None
    if kind == "collective-permute":
        pairs = draw(
            st.lists(
                st.tuples(st.integers(0, 7), st.integers(0, 7)),
                min_size=1,
                max_size=8,
                unique_by=(lambda p: p[0], lambda p: p[1]),
            )
        )
    return collective(
        mesh,
        kind,
        draw(st.sampled_from(MESHES[mesh])),
        draw(SCOPES),
        operands=draw(st.lists(operands, min_size=1, max_size=3)),
        pairs=pairs,
        loops=draw(st.lists(st.integers(1, 7), max_size=2)),
        form=draw(st.sampled_from(["sync", "windowed-einsum"])),
        executions_are=draw(st.sampled_from(["exact", "exact", "upper-bound", "unknown"])),
        in_exact_branch=draw(st.booleans()),
        reaches_root=draw(st.booleans()),
        part_of=draw(st.sampled_from(["", "", "tp"])),
        reducer=draw(st.sampled_from(["", "add", "maximum"])),
    )


@st.composite
def contract_rows(draw, mesh):
    """A row of any contract, of few elements or of as many as some operands have; of a permute perhaps a ring."""
    kind, step, idle = draw(KINDS), draw(st.integers(0, 4000)), draw(st.integers(0, 1))
    return ContractRow(
        scope=draw(SCOPES),
        kind=kind,
        axes=draw(st.sampled_from(MESHES[mesh][:3])),
        executions=1,
        payload_bytes=draw(st.sampled_from([1, 32, 64, 256, step + 1])),
        wire_bytes=step,
        step_wire_bytes=step,
        carries=draw(st.sampled_from(["floats", "integers", "both"])),
        ticks=4 + idle,
        idle_ticks=idle,
        devices=draw(st.one_of(st.none(), st.frozensets(st.integers(0, 7), min_size=1))),
        hops=draw(st.integers(0, 3)) if kind == "collective-permute" else 0,
        vocab=draw(st.integers(0, 300)),
        sums=draw(st.sampled_from([(), (("maximum", 4), ("add", 8))])),
        token_elements=draw(st.sampled_from([0, 16])),
    )


@pytest.mark.parametrize("mesh", ["dp2pp2tp2", pytest.param("cp2ep2tp2", marks=pytest.mark.slow)])
@settings(max_examples=200)
@given(data=st.data())
def test_every_byte_is_inherent_inflated_or_induced_and_what_is_served_is_inherent(mesh, data):
    program = data.draw(st.lists(rows(mesh), max_size=6))
    contract = data.draw(st.lists(contract_rows(mesh), max_size=5))
    judgement = judge_rows(program, contract, mesh=mesh)
    assert all(amount > 0 for verdict in judgement.verdicts for amount in verdict.causes.values())
    assert all(0 <= served <= row.step_wire_bytes for served, row in zip(judgement.served_bytes, contract, strict=True))
