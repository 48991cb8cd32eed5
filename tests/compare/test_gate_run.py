"""`compare.run --fail-if`: refused before anything is compiled, or decided on what was."""

from pathlib import Path

import pytest

from tests.commands import check_refusal, run_here


def run(*words, scratch):
    environment = {"WIREDIFF_CACHE": str(scratch / "cache")}
    words = ("--model", "tiny", "--mesh", "tp2", *words, "--out", scratch / "runs")
    return run_here("run", *words, cwd=scratch, environment=environment)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-if", "induced"), "cannot read --fail-if 'induced'"),
        (("--fail-if", "indused>0"), "there is no total 'indused'"),
        (("--phase", "decode", "--fail-if", "prefill.induced>0"), "'prefill' is no arm of this run"),
        (("--arm", "jax", "--fail-if", "torchxla.induced>0"), "'torchxla' is no arm of this run"),
        (("--arm", "jax", "--fail-if", "framework_induced>0"), "a comparison of frameworks, and this run is of one"),
        (("--fail-if", "induced>0", "--fail-if", "induced>x"), "'x' is no number"),
    ],
)
def test_a_wrong_expression_is_one_line_before_anything_is_made(tmp_path, words, said):
    done = run(*words, scratch=tmp_path)
    check_refusal(done, said)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_what_trips_is_named_and_the_report_is_written_all_the_same(tmp_path):
    words = ("--arm", "jax", "--phase", "decode", "--controls", "none")
    passed = run(*words, "--fail-if", "induced > 1 TB", "--fail-if", "wire_bytes < 1", "--no-pages", scratch=tmp_path)
    assert passed.returncode == 0, passed.stderr
    numbers = Path(passed.stdout.splitlines()[-1])
    assert numbers.name == "report.json"
    written = {path.name for path in numbers.parent.iterdir()}
    assert {"report.json", "tables", "jax"} <= written
    assert not written & {"report.html", "figures", "timeline.perfetto.json.gz"}
    done = run(*words, "--fail-if", "induced > 1 TB", "--fail-if", "jax.decode.wire_bytes > 1", scratch=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "--fail-if 'jax.decode.wire_bytes > 1': wire_bytes of JAX decode tpu is "
    )
    assert "induced > 1 TB" not in done.stderr
    assert Path(done.stdout.splitlines()[-1]) == numbers.with_name("report.html")
    assert numbers.with_name("report.html").is_file()
