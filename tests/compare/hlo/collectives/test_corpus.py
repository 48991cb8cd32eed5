"""The reader against compiled programs whose answers were worked out by hand.

Each program of `corpus/` is HLO text as a compiler wrote it (jax 0.10.2, libtpu 0.0.42.1; `jax011_*` jax 0.11.2, libtpu
0.0.48; `hand_*` were typed, `*cpu_*` come from the CPU compiler), beside a JSON with its source, the mesh axes, and its
rows with the arithmetic behind each.  A word that a row leaves out is not claimed: a scope that the source does not
settle, for one.
"""

import gzip
import json
import subprocess
import sys
from collections import Counter

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text import module
from compare.hlo.text.metadata import SourceNames
from tests.places import CORPUS

WORDS = {f"/{word}/": word for word in ("embed", "head", "sample")}
MAPS = {"both_branches": WORDS, "vocab": WORDS}
"""Programs whose source names its parts by words that anybody may use: they count where a map says so."""

PROGRAMS = sorted(path.name.removesuffix(".json") for path in CORPUS.glob("*.json"))


def answers(program: str) -> dict:
    return json.loads((CORPUS / f"{program}.json").read_text())


def axes_of(program: str) -> dict[str, int]:
    return {name: int(size) for name, size in (axis.split("=") for axis in answers(program)["axes"].split(","))}


def read(program: str) -> list:
    hlo = gzip.decompress((CORPUS / f"{program}.hlo.gz").read_bytes()).decode()
    ids, names = answers(program).get("device_ids", ()), SourceNames.of(MAPS.get(program))
    return collectives(module.read(hlo), axes_of(program), device_ids=ids, names=names)


def plain(value):
    """Groups as lists, as JSON has them."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_row_is_the_one_worked_out_by_hand(program):
    by_hand = answers(program)["rows"]
    found = read(program)
    asked = [{word: value for word, value in row.items() if word != "derivation"} for row in by_hand]
    said = [{word: plain(getattr(row, word)) for word in words} for row, words in zip(found, asked, strict=False)]
    assert said == asked
    assert len(found) == len(by_hand)


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
    paths = [str(CORPUS / f"{program}.hlo.gz") for program in PROGRAMS]
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *paths], capture_output=True, text=True, check=True, timeout=120
    )
    for program, line in zip(PROGRAMS, done.stdout.splitlines(), strict=True):
        counted: Counter[str] = Counter()
        for opcode, written in json.loads(line):
            spelled = opcode.rpartition(".")[2].lower().replace("_", "").removeprefix("k")
            # A link of an async chain repeats its collective: only the chain's start counts.
            counted["collectives"] += spelled in OPCODES and 'chain_id="' not in written
            counted["collectives"] += 'custom_call_target="AsyncCollectiveStart"' in written
        assert len(read(program)) == counted["collectives"], program
