"""The whole job over two slices: both arms compiled, and what crosses between slices told apart."""

import json
from pathlib import Path

import pytest

from tests.commands import run_process

SHIFT = 5 * 512 // 2
"""Five ticks of 2 tokens · 128 · 2 bytes, sent by the four devices of the first stage."""
COLLECT = 8 * 4 // 2
"""Eight ids, from the last stage to the first."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def done(tmp_path_factory, shared_cache):
    out = tmp_path_factory.mktemp("slices")
    words = ("--mesh", "pp2tp4@2xv5e:2x2", "--model", "tiny", "--seq", "128", "--phase", "decode", "--details")
    words += ("--no-pages",)
    environment = {"WIREDIFF_CACHE": str(shared_cache)}
    return run_process("-m", "compare.run", *words, "--out", out / "runs", cwd=out, environment=environment)


@pytest.fixture(scope="module")
def decode(done):
    assert done.returncode == 0, done.stderr
    return json.loads(Path(done.stdout.splitlines()[-1]).with_name("report.json").read_text())["phases"]["decode"]


def test_stages_on_two_slices_send_on_over_the_data_centre_network(decode):
    (shift,) = (row for row in decode["inherent"] if row["scope"] == "pipeline.shift")
    assert (shift["network"], shift["unserved_bytes"]) == ("dcn", 0)
    for arm in ("jax", "torchxla"):
        rows = decode["arms"][arm]["collectives"]
        crossing = {row["scope"]: row["step_wire_bytes"] for row in rows if row["network"] == "dcn"}
        assert crossing["pipeline.shift"] == SHIFT
        assert {row["axes"] for row in rows if row["network"] == "dcn"} == {"pp"}
        assert {row["form"] for row in rows if row["network"] == "dcn"} == {"megascale"}


def test_bytes_between_slices_are_counted_apart(decode, done):
    for arm in ("jax", "torchxla"):
        entry = decode["arms"][arm]
        for cell in (entry, *entry["controls"].values()):
            totals = cell["totals"]
            assert totals["ici_wire_bytes"] + totals["dcn_wire_bytes"] == totals["wire_bytes"]
            assert totals["dcn_wire_bytes"] >= SHIFT + COLLECT
            assert totals["unserved"] == 0
    assert "Between the 2 slices (dcn): JAX tpu" in done.stdout


def test_no_collective_has_lost_the_part_of_the_model_that_asked(decode):
    for arm in ("jax", "torchxla"):
        rows = decode["arms"][arm]["collectives"]
        assert "?" not in {row["scope"] for row in rows}
