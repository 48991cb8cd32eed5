"""The reader against compiled programs whose answers were worked out by hand, and what holds for the rows of all.

Each program of `corpus/` is HLO text as a compiler wrote it (jax 0.10.2, libtpu 0.0.42.1; `jax011_*` jax 0.11.2, libtpu
0.0.48; `hand_*` were typed, `*cpu_*` come from the CPU compiler), beside a JSON with its source, the mesh axes, and its
rows with the arithmetic behind each.  A word that a row leaves out is not claimed: a scope that the source does not
settle, for one.
"""

import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest

from compare.contract.row import ContractRow
from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.event_names import container_names, map_event_names
from compare.hlo.collectives.single_line import read_line
from compare.hlo.text.computation_spans import find_spans
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read
from compare.verdict.verdict import judge
from tests.compare.hlo.corpus_programs import NAMES, load


@pytest.fixture(scope="session", params=NAMES)
def program(request):
    return load(request.param)


def plain(value):
    """Groups as lists, as JSON has them."""
    return json.loads(json.dumps(value))


def test_every_row_is_the_one_worked_out_by_hand(program):
    by_hand, found = program.by_hand["rows"], program.named_rows()
    asked = [{word: value for word, value in row.items() if word != "derivation"} for row in by_hand]
    said = [{word: plain(getattr(row, word)) for word in words} for row, words in zip(found, asked, strict=False)]
    assert said == asked
    assert len(found) == len(by_hand)


def test_the_numbers_of_a_row_agree_with_each_other(program):
    devices = math.prod(program.axes.values())
    for row in program.rows:
        assert row.payload_bytes == sum(operand.payload_bytes for operand in row.operands)
        assert row.dtype == "+".join(dict.fromkeys(operand.dtype for operand in row.operands))
        assert len(row.device_bytes) == devices
        assert row.wire_bytes == math.floor(Fraction(sum(row.device_bytes), devices) + Fraction(1, 2))
        if row.executions_are == "unknown":
            assert (row.executions, row.step_wire_bytes, row.device_executions) == (None, None, ())
            assert any(loop.trip_count is None for loop in row.loops)
            continue
        assert row.executions == max(row.device_executions)
        assert len(row.device_executions) == devices
        sent = sum(runs * out for runs, out in zip(row.device_executions, row.device_bytes, strict=True))
        assert row.step_wire_bytes == math.floor(Fraction(sent, devices) + Fraction(1, 2))


def test_without_sigils_the_rows_are_the_same(program):
    bare = collectives(read(program.text.replace("%", "")), program.axes)
    assert [row.public() for row in bare] == [row.public() for row in program.rows]


def test_without_axes_only_what_depends_on_them_changes(program):
    if "_xla_megascale" in program.text or math.prod(program.axes.values()) != program.module.num_devices:
        pytest.skip("of several slices only the axes say how many devices there are")
    for without, row in zip(collectives(program.module, {}), program.rows, strict=True):
        assert without.axes == "?"
        assert (without.name, without.kind, without.payload_bytes, without.step_wire_bytes) == (
            row.name,
            row.kind,
            row.payload_bytes,
            row.step_wire_bytes,
        )


@pytest.mark.parametrize("name", NAMES[::7])
def test_wherever_the_text_is_cut_it_is_refused_in_one_line(name):
    text, axes = load(name).text, load(name).axes
    end = text.rstrip().rfind("\n}")
    for at in range(40, end, max(1, end // 25)):
        with pytest.raises(ValueError, match=r"\S") as refused:
            collectives(read(text[:at]), axes)
        assert "\n" not in str(refused.value)


def test_a_text_without_one_of_its_collectives_is_refused(program):
    """Whatever line of a collective is missing: something names it, or what it began."""
    lines = program.text.split("\n")
    for row in program.rows:
        if not lines[row.line - 1].lstrip().startswith("ROOT"):
            with pytest.raises(HloError):
                collectives(read("\n".join(lines[: row.line - 1] + lines[row.line :])), {})


def test_both_readings_of_a_text_agree(program):
    """A blank line before the header is not common: the text is then read line by line."""
    common, careful = (find_spans(text) for text in (program.text, "\n" + program.text))
    assert [
        (span.name, span.is_entry, common.text[span.begin : span.end], span.first + 1) for span in common.spans
    ] == [(span.name, span.is_entry, careful.text[span.begin : span.end], span.first) for span in careful.spans]


def test_every_collective_is_whole_or_starts_and_is_done(program):
    found = map_event_names(program.module, program.rows)
    told = {row.name: {one.part for one in found.values() if one.row is row} for row in program.rows}
    assert all("whole" in words or {"start", "done"} <= words for words in told.values()), told
    assert all(row.name in found and found[row.name].row is row for row in program.rows)
    assert not container_names(program.module) & set(found)
    assert set(found) <= {item.name for item in instructions(program)}


def instructions(program):
    return [item for computation in program.module.computations.values() for item in computation]


def test_every_line_alone_agrees_with_its_program(program):
    known = map_event_names(program.module, program.rows)
    # What a plain `async-start` wraps only the computation that it calls tells.
    for item in instructions(program):
        line, carrier = read_line(item.text), known.get(item.name)
        if carrier is None or carrier.part == "beside" or item.opcode in ("async-start", "async-done"):
            assert line.kind == "", item.text
        else:
            assert line.kind in (carrier.row.kind, "?") or carrier.row.form == "fused-reduce-scatter", item.text
            assert line.payload_bytes in (carrier.row.payload_bytes, None), item.text
            assert carrier.part == "inside" or line.part == carrier.part, item.text


def half_contract(rows):
    """A contract that asks for a half of every second place that the program communicates at, in small arrays."""
    moved: dict[tuple[str, str, str], int] = {}
    for row in rows:
        place = (row.scope, row.kind, row.axes)
        moved[place] = moved.get(place, 0) + (row.step_wire_bytes or 0)
    return [
        ContractRow(
            scope=scope,
            kind=kind,
            axes=axes,
            executions=1,
            payload_bytes=1,
            wire_bytes=amount // 2,
            step_wire_bytes=amount // 2,
            carries="both",
            ticks=5,
            idle_ticks=1,
        )
        for (scope, kind, axes), amount in list(moved.items())[::2]
    ]


def test_every_byte_is_accounted_for_once(program):
    for contract in ([], half_contract(program.rows)):
        judgement = judge(program.rows, contract, axes=program.axes)
        counted = [verdict for verdict in judgement.verdicts if verdict.inherent_bytes is not None]
        assert [v.collective for v in judgement.verdicts] == program.rows
        for verdict in counted:
            parts = (verdict.inherent_bytes, verdict.inflated_bytes, verdict.induced_bytes)
            assert sum(parts) == verdict.collective.step_wire_bytes
            assert min(parts) >= 0
        assert sum(judgement.served_bytes) == sum(v.inherent_bytes for v in counted)


PARSE = """
import gzip, json, sys
from jaxlib import _hlo
for path in sys.argv[1:]:
    module = _hlo.hlo_module_from_text(gzip.open(path, "rt").read())
    every = [each for computation in module.computations() for each in computation.instructions()]
    print(json.dumps([[str(each.opcode), each.to_string()] for each in every]))
"""
"""XLA's parser aborts its process on some text, so it has one of its own."""

OPCODES = {
    "allreduce",
    "allreducestart",
    "allgather",
    "allgatherstart",
    "reducescatter",
    "alltoall",
    "raggedalltoall",
    "collectivepermute",
    "collectivepermutestart",
    "collectivebroadcast",
    "send",
}


def test_the_reader_finds_as_many_collectives_as_xla_parser():
    pytest.importorskip("jaxlib._hlo")
    paths = [str(load(name).path) for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *paths], capture_output=True, text=True, check=True, timeout=120
    )
    for name, line in zip(NAMES, done.stdout.splitlines(), strict=True):
        counted: Counter[str] = Counter()
        for opcode, written in json.loads(line):
            spelled = opcode.rpartition(".")[2].lower().replace("_", "").removeprefix("k")
            # A link of an async chain repeats its collective: only the chain's start counts.
            counted["collectives"] += spelled in OPCODES and 'chain_id="' not in written
            counted["collectives"] += 'custom_call_target="AsyncCollectiveStart"' in written
        assert len(load(name).rows) == counted["collectives"], name
