"""`compare.remedy` as a user runs it: refusals, and one search on the real compiler."""

import json
from importlib.util import find_spec

import pytest

from meshes.twins.caches import CACHE_USES
from tests.commands import check_refusal, run_here, run_process
from tests.places import ROOT


def remedy(*argv, cwd, cache):
    """A process of its own."""
    return run_process("-m", "compare.remedy", *argv, cwd=cwd, environment={"WIREDIFF_CACHE": str(cache)})


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--mesh", "tp8", "--max-compiles", "none"], "'none' is no whole number from 1; write one like 8"),
        (
            ["--mesh", "tp8", "--style", "explicit"],
            "--style explicit has no remedies: its collectives are all written by hand; use one of pinned",
        ),
        (["--mesh", "tp64"], "error: tp64 does not divide the heads of llama-3.1-8b"),
        (["--mesh", "tp8", "--arm", "keras"], "error: unknown framework 'keras'; choose from jax, torchxla"),
        (
            ["--mesh", "tp8", "--into", str(ROOT / "docs" / "example-run")],
            "example-run is a run of llama-3.1-8b-pp2tp4",
        ),
        ([], "error: no mesh was named"),
    ],
)
def test_a_wrong_request_is_refused_in_one_line(argv, says, tmp_path):
    done = run_here("remedy", *argv, cwd=tmp_path, environment={"WIREDIFF_CACHE": str(tmp_path / "cache")})
    check_refusal(done, says)


def test_a_refusal_of_a_process_is_its_last_word(tmp_path):
    done = remedy("--mesh", "tp64", cwd=tmp_path, cache=tmp_path / "cache")
    check_refusal(done, "error: tp64 does not divide the heads of llama-3.1-8b")


@pytest.mark.slow
def test_heads_first_removes_what_pytorchs_attention_gathers(tmp_path, shared_cache):
    """Decode on tp4, hand-checked: q, keys and values of every layer travel; with another form nothing does."""
    if not all(map(find_spec, ("torch_xla", "libtpu"))):  # not imported here: that sets XLA_FLAGS for all later tests
        pytest.skip("torch_xla or libtpu is not installed")
    words = ["--mesh", "tp4", "--model", "tiny", "--arm", "torchxla", "--phase", "decode", "--json"]
    done = remedy(*words, "--max-compiles", "3", cwd=tmp_path, cache=shared_cache)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    decode = result["arms"]["torchxla"]["phases"]["decode"]
    # 4 layers, 3/4 of: 8 sequences of 16 query heads, and of 8 KV heads at 1152 positions, keys and values; each 16
    # numbers of two bytes.
    by_hand = 4 * 3 * 8 * (16 + 2 * 8 * 1152) * 16 * 2 // 4
    assert decode["before"]["induced_bytes"] == by_hand
    assert decode["after"]["induced_bytes"] == 0
    assert [entry["removes_bytes"] for entry in decode["remedies"]] == [by_hand]
    assert decode["remedies"][0]["name"] in ("attention-einsum", "attention-heads-first")
    assert result["compiles"] == 3
    # The limit of three is reached: another form of the call, and on top of the best one each way to use the cache.
    assert ["attention-per-sequence"] in decode["not_tried"]
    others = [names for names in decode["not_tried"] if names != ["attention-per-sequence"]]
    assert {names[-1] for names in others} == set(CACHE_USES)
