"""Damaged and hostile input: some of what `python -m benchmarks.fuzz` tries, and that it finds what is wrong."""

import random
from dataclasses import replace

import pytest

from benchmarks.fuzz import hlo, run
from benchmarks.fuzz.readers import READERS, Reader, _texts
from compare.hlo.collectives.collectives import collectives
from compare.hlo.devices.axes import read_axes
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

NAMED = {reader.name: reader for reader in READERS}
FEW = {
    "HLO text, anywhere": 150, "HLO text, beside the collectives": 150,
    "HLO text, with a scope map": 100, "log of the partitioner": 300, "a line of HLO": 300, "HLO file, gzipped": 30,
    "HLO proto": 100, "recorded passes": 20, "xplane.pb": 40, "Chrome trace as a profile": 20,
    "mesh names": 300, "mesh files (TOML)": 100, "machine files (TOML)": 100,
    "samples of power (CSV)": 100, "log of Zeus": 100, "Measurement of Zeus": 100,
    "Chakra trace": 150, "network.yml": 60, "system.json": 60, "groups.json": 40,
    "config.json": 100, "safetensors header": 100, "case.json": 100,
    "about.json of a run": 20, "cache manifest": 50, "remedies.json": 30, "sweep.json of an earlier sweep": 20,
    "report.json of a sweep's case": 5, "converted.json": 50, "cache entry": 100, "query (SQL)": 20,
    "mark of an export": 100, "text of a study": 100, "workload card (YAML)": 200, "chip file (TOML)": 200,
    "Chrome trace of many events": 20,
}  # fmt: skip


QUICK = [pytest.param(name, marks=() if name.startswith("HLO") else pytest.mark.slow) for name in FEW]


@pytest.mark.parametrize("name", QUICK)
def test_every_input_is_read_or_refused_in_one_line(name, monkeypatch):
    monkeypatch.setattr(run, "MOST_SECONDS", 300)
    outcomes = run.try_inputs(NAMED[name], range(FEW[name]), seed=12)
    assert outcomes.findings == {}
    assert outcomes.outcomes.total() == FEW[name]
    assert set(outcomes.outcomes) <= {"read", "refused"}


def describe(read):
    """What a reader shows that does this."""
    given = Reader("toy", 1, lambda: ["seed"], lambda seed, _: seed, lambda seed, _: read(seed))
    return sorted(run.try_inputs(given, range(1), seed=0).findings)


def failing(error):
    def fail(_):
        raise error

    return fail


def test_what_is_to_be_mended_is_found(monkeypatch):
    assert describe(str) == []
    assert describe(failing(HloError("line 3: cannot be read"))) == []
    assert [finding.partition(":")[0] for finding in describe(failing(KeyError("a")))] == ["traceback"]
    assert [finding.partition(":")[0] for finding in describe(failing(ValueError("not ours")))] == ["traceback"]
    for said in ("a\nb", "\x1b[31m", "x" * 501, ""):
        error = HloError("")
        error.args = (said,)
        assert [finding.partition(":")[0] for finding in describe(failing(error))] == ["refusal"], said
    monkeypatch.setattr(run, "MOST_SECONDS", 0.05)

    def forever(_):
        while True:
            pass

    assert [finding.partition(":")[0] for finding in describe(forever)] == ["hang"]


def test_a_row_that_is_lost_or_another_is_found():
    seed = next(text for text in _texts() if text.rows and len(text.rows) > 1)
    rows = collectives(read(seed.text), read_axes(seed.axes))
    assert hlo.describe_loss(seed.text, rows) == ""
    assert "rows were read" in hlo.describe_loss(seed.text, rows[1:])
    assert "less than nothing" in hlo.describe_loss(seed.text, [replace(rows[0], payload_bytes=-1), *rows[1:]])
    assert hlo.comparable_columns(rows) == seed.rows
    assert hlo.comparable_columns([replace(rows[0], executions=7), *rows[1:]]) != seed.rows


def test_a_bystander_is_no_collective_and_next_to_none():
    for seed in _texts():
        lines = seed.text.split("\n")
        rows = collectives(read(seed.text), read_axes(seed.axes))
        names = {operand for row in rows for operand in row.text.partition("(")[2].partition(")")[0].split(", ")}
        for at in seed.places:
            assert at + 1 not in {row.line for row in rows}
            assert lines[at].split()[0] not in names
            assert not {"while", "conditional", "call"} & set(lines[at].replace("(", " ").split())


def test_an_input_is_told_by_its_reader_seed_and_number():
    reader = NAMED["HLO text, anywhere"]
    seed = reader.seeds()[0]
    first, again, other = (reader.make(seed, random.Random(key)).text for key in ("0/a/1", "0/a/1", "0/a/2"))
    assert first == again != other
