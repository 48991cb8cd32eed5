"""What holds for the rows of every program of the corpus, however it is spelled."""

import gzip
import json
import math
from fractions import Fraction

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from tests.places import CORPUS

PROGRAMS = sorted(path.name.removesuffix(".json") for path in CORPUS.glob("*.json"))


def program(name):
    axes = json.loads((CORPUS / f"{name}.json").read_text())["axes"]
    sizes = {axis: int(size) for axis, size in (part.split("=") for part in axes.split(","))}
    return gzip.decompress((CORPUS / f"{name}.hlo.gz").read_bytes()).decode(), sizes


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_of_a_row_agree_with_each_other(name):
    text, axes = program(name)
    devices = math.prod(axes.values())
    for row in collectives(read(text), axes):
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


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_sigils_the_rows_are_the_same(name):
    text, axes = program(name)
    plain = collectives(read(text.replace("%", "")), axes)
    assert [row.public() for row in plain] == [row.public() for row in collectives(read(text), axes)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_axes_only_what_depends_on_them_changes(name):
    text, axes = program(name)
    module = read(text)
    if "_xla_megascale" in text or math.prod(axes.values()) != module.num_devices:
        pytest.skip("of several slices only the axes say how many devices there are")
    for plain, row in zip(collectives(module, {}), collectives(module, axes), strict=True):
        assert plain.axes == "?"
        assert (plain.name, plain.kind, plain.payload_bytes, plain.step_wire_bytes) == (
            row.name,
            row.kind,
            row.payload_bytes,
            row.step_wire_bytes,
        )


@pytest.mark.parametrize("name", PROGRAMS[::7])
def test_wherever_the_text_is_cut_it_is_refused_in_one_line(name):
    text, axes = program(name)
    end = text.rstrip().rfind("\n}")
    for at in range(40, end, max(1, end // 25)):
        with pytest.raises(ValueError, match=r"\S") as refused:
            collectives(read(text[:at]), axes)
        assert "\n" not in str(refused.value)
