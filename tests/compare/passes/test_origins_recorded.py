"""Lives of recorded programs, held against what a plain search in libtpu's texts finds."""

import gzip
import re
from collections import Counter
from functools import cache

import pytest

from compare.passes.archive import spans, unpack
from compare.passes.lineage import trace_archive
from compare.passes.snapshot import read_snapshot
from tests.places import RECORDED

"""A tiny model, compiled by libtpu 0.0.42.1 for v5e: PyTorch/XLA on tp16 over two slices (decode) and on tp8+sp
(prefill), JAX on cp4tp2 (prefill), whose ring is a shard_map."""
NAMES = ("two-slices", "sequence", "ring")

COLLECTIVE = re.compile(
    r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(| send\(.*megascale"
)


def trace(text):
    """The lines that a search finds."""
    return [line.strip() for line in text.splitlines() if COLLECTIVE.search(line)]


@cache
def load(name):
    """What was recorded, the lives of its collectives, and the optimized text."""
    archive = (RECORDED / name / "passes.tar.xz").read_bytes()
    text = gzip.decompress((RECORDED / name / "optimized.hlo.gz").read_bytes()).decode()
    return unpack(archive), trace_archive(archive, text), text


@pytest.fixture(params=NAMES)
def recorded(request):
    return request.param, *load(request.param)


def test_the_reader_sees_what_a_search_finds(recorded):
    _, snapshots, _, _ = recorded
    checked = 0
    for snapshot in snapshots:
        if "chain_id" not in snapshot.text:  # parts of one collective would be found several times
            assert sorted(item.line for item in read_snapshot(snapshot.text)) == sorted(trace(snapshot.text))
            checked += 1
    assert checked > 15


def test_every_collective_of_the_optimized_program_has_a_life_and_none_is_unknown(recorded):
    _, _, lives, text = recorded
    assert set(lives) == {item.name for item in read_snapshot(text)}
    assert {life.origin for life in lives.values()} <= {"program", "partitioner"}


def test_what_the_partitioner_put_there_is_what_a_search_finds_more_of_after_it(recorded):
    _, snapshots, lives, _ = recorded
    at = spans(snapshots).index("tpu-spmd-partitioning")
    before, after = trace(snapshots[at].text), trace(snapshots[at + 1].text)
    put = {life.events[0].after for life in lives.values() if life.origin == "partitioner"}
    assert put <= set(after)
    assert len(put) == len(after) - len(before)


def test_what_is_the_program_s_stands_in_the_program_as_the_framework_wrote_it(recorded):
    name, snapshots, lives, _ = recorded
    own = {life.events[0].after for life in lives.values() if life.origin == "program"}
    assert snapshots[0].after == ""
    assert own == set(trace(snapshots[0].text))
    assert bool(own) is (name == "ring")


def test_two_slices_part_each_collective_in_three_or_two():
    """An all-reduce over both comes as scatter, sum and gather, an all-gather as two; each went through both passes."""
    _, lives, _ = load("two-slices")
    parts = Counter(life.events[0].after for life in lives.values())
    kinds = {line: 3 if " all-reduce(" in line else 2 for line in parts}
    assert parts == kinds
    for life in lives.values():
        assert [change.what for change in life.changes][:2] == ["split", "replaced"]
        assert [change.by for change in life.changes][:2] == ["split-ici-dcn", "cross-slice-rewrites"]


def test_scatters_of_sequence_parallelism_are_all_reduces_until_they_are_fused():
    _, lives, _ = load("sequence")
    fused = [
        life for life in lives.values() if any(change.by == "tpu-all-reduce-scatter-fusion" for change in life.changes)
    ]
    assert len(fused) == 3  # embed, attention.out, mlp.down
    for life in fused:
        assert " all-reduce(" in life.events[0].after
        (detail,) = (event.detail for event in life.events if event.what == "replaced")
        assert detail == "all-reduce → reduce-scatter, written anew, without its name"


def test_gathers_of_attention_are_put_there_in_float32_and_narrowed_by_a_pass():
    _, lives, _ = load("sequence")
    narrowed = [life for life in lives.values() if any(change.by == "bfloat16-propagation" for change in life.changes)]
    assert len(narrowed) == 3  # queries, keys, values
    assert all(re.search(r"= f32\[[\d,]+\]\S* all-gather\(", life.events[0].after) for life in narrowed)
