"""What is asked for and cannot be had is told: options without effect, programs that cannot be read, places taken."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from compare.cli.front_door import main
from meshes.process.command_line import run_to_status
from tests.places import EXAMPLE

Ask = Callable[..., tuple[int, str, str]]
PROGRAM = EXAMPLE / "jax/decode/tpu"
TEXT = f"{PROGRAM}/optimized.hlo.gz"


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """(status, stdout, stderr) of a command line."""

    def asked(*words: object) -> tuple[int, str, str]:
        def work() -> int:
            try:
                return main([*map(str, words)])
            except SystemExit as end:
                return int(str(end.code))

        status = run_to_status(work)
        return status, *capsys.readouterr()

    return asked


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[[str, int], Path]:
    """A copy of the example with a file of JAX's decode step cut after so many bytes."""

    def cut(name: str, size: int) -> Path:
        run = tmp_path / f"cut-{size}"
        shutil.copytree(EXAMPLE, run)
        file = run / "jax/decode/tpu" / name
        file.write_bytes(file.read_bytes()[:size])
        return run

    return cut


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (("teach", ""), "an argument is empty; is a variable not set?"),
        (("run", "--mesh", "tp8", "--out", ""), "--out is empty"),
        (("calibrate", "--only", " "), "--only is empty"),
        (("what-if", EXAMPLE, "--sweep="), "--sweep is empty"),
        (("trace", ""), "an argument is empty"),
        (("plan", "--mesh", "tp8", "-q", "-v"), "not allowed with argument"),
        (("teach", "--list", "matmul"), "leave out --quiz and PATTERN"),
        (("teach", "--list", "--quiz"), "leave out --quiz and PATTERN"),
        (("query", EXAMPLE, "select 1", "--save", "saved"), "ask them in a second command"),
        (("query", EXAMPLE, "--allow-files", "."), "no query that could read files"),
        (("hlo", TEXT, "--mesh", "tp4pp2@v5e:2x4", "--time", "--topology", "v6e:2x4"), "are both given"),
        (("hlo", TEXT, "--axes", "pp=2,tp=8"), "the axes pp=2,tp=8 are of 16 devices, and the program is for 8"),
        (("hlo", PROGRAM, "--framework", "torchxla"), "belong to the run folder"),
        (("trace", "no.xplane.pb", "--mesh", "tp4pp2", "--batch", "8"), "--batch is of a contract"),
        (("trace", "no.xplane.pb", "--mesh", "tp4pp2", "--scopes", "no.json"), "--scopes is of a contract"),
        (("cost", "--pairs", "0-1:8", "--machine", "v6e:2x4", "--algorithm", "ring,ring"), "belongs to --collective"),
        (("what-if", EXAMPLE, "--machine", "README.md"), "or a file whose name ends in .toml"),
        (("what-if", EXAMPLE, "--out", __file__), "is no folder; choose another with --out"),
        (("energy", EXAMPLE, "--frequency", "0.5:1:0.5", "--figure", "nowhere/f.svg"), "there is no folder 'nowhere'"),
        (("replay", EXAMPLE, "--out", "nowhere/x.json.gz"), "there is no folder 'nowhere'"),
        (("calibrate", "--out", "nowhere/x.toml"), "there is no folder 'nowhere'"),
        (("remedy", "--mesh", "tp8", "--html", "nowhere/x.html"), "there is no folder 'nowhere'"),
        (("diff", EXAMPLE, EXAMPLE, "--html", EXAMPLE), "is a folder; name a file"),
        (("run", "--mesh", "tp8", "--controls", "none,all"), "none and all stand alone"),
        (("plan", "--mesh", "tp8", "--phase", "prefill,prefill"), "names prefill twice"),
        (("sweep", "--meshes", "tp8", "--phases", "foo"), "'foo' is no phase; choose from prefill, decode"),
        (("cost", "--pairs", "foo", "--machine", "v6e:2x4"), "'foo' is no message"),
        (("history", PROGRAM), f"it is one program of the run {EXAMPLE}"),
        (("metric", "--metric", "mfu", "--trace", PROGRAM), f"it is one program of the run {EXAMPLE}"),
        (("diff", EXAMPLE, "nothing"), "nothing: No such file or directory"),
        (("plan", "--mesh", "tp8", "--capacity", "full"), "capacity is full, but llama-3.1-8b has no experts"),
    ],
)
def test_an_option_without_effect_is_refused_in_one_line(line: Sequence[object], told: str, ask: Ask) -> None:
    status, out, err = ask(*line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_two_programs_that_cannot_be_read_are_not_the_same(damaged: Callable[[str, int], Path], ask: Ask) -> None:
    runs = [damaged("optimized.hlo.gz", size) for size in (5_000, 0)]
    status, out, _ = ask("diff", *runs)
    assert status == 1
    assert out.splitlines()[-2:] == [
        "not compared: JAX decode tpu (damaged in both)",
        "What could be read of the two runs moves the same bytes.",
    ]
    status, out, _ = ask("diff", *runs, "--json")
    assert (status, json.loads(out)["same"]) == (1, False)


def test_a_program_that_cannot_be_read_is_named_and_the_rest_is_shown(
    damaged: Callable[[str, int], Path], ask: Ask
) -> None:
    run = damaged("optimized.hlo.gz", 5_000)
    status, out, err = ask("hlo", run, "--phase", "decode", "--json")
    assert (status, list(json.loads(out))) == (1, ["torchxla/decode/tpu"])
    assert err.startswith("left out: jax/decode/tpu/optimized.hlo.gz cannot be read again")
    status, out, err = ask("hlo", run / "jax/decode/tpu")
    assert (status, out) == (2, "")
    assert "jax/decode/tpu/optimized.hlo.gz cannot be read again" in err


def test_passes_that_cannot_be_read_are_told(damaged: Callable[[str, int], Path], ask: Ask) -> None:
    words = ("--framework", "jax", "--phase", "decode")
    assert ask("history", EXAMPLE, *words)[::2] == (0, "")
    status, _, err = ask("history", damaged("passes.tar.xz", 3_000), *words)
    assert (status, err) == (
        1,
        "left out: jax/decode/tpu: the recorded passes are cut or damaged: the end is missing\n",
    )


def test_an_export_for_one_tool_stays_where_another_is_asked_for(tmp_path: Path, ask: Ask) -> None:
    words = ("--framework", "jax", "--phase", "decode", "--variant", "tpu", "--out", tmp_path / "out")
    assert ask("export", EXAMPLE, "--to", "chakra", *words)[0] == 0
    before = sorted((tmp_path / "out").rglob("*"))
    status, out, err = ask("export", EXAMPLE, "--to", "ccl-bench", *words)
    assert (status, out) == (2, "")
    assert err == f"error: {tmp_path}/out holds an export for 'chakra'; choose another with --out\n"
    assert sorted((tmp_path / "out").rglob("*")) == before
    assert ask("export", EXAMPLE, "--to", "chakra", *words)[0] == 0


def test_a_report_is_not_written_over_another_case(tmp_path: Path, ask: Ask) -> None:
    other = json.loads((EXAMPLE / "case.json").read_text())
    for case, told in (
        (other | {"batch": 16}, "-b16-s1024-m4, not of llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4; choose another --out"),
        ({}, "this is not a case: it has no 'mesh'"),
        ([], "this is not a case: it is no object"),
    ):
        (tmp_path / "case.json").write_text(json.dumps(case))
        status, out, err = ask("report", EXAMPLE, "--out", tmp_path)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert told in err
        assert [file.name for file in tmp_path.iterdir()] == ["case.json"]


def test_a_list_of_saved_tables_is_json_where_that_is_asked_for(tmp_path: Path, ask: Ask) -> None:
    status, out, _ = ask("query", EXAMPLE, "--save", tmp_path / "saved", "--json")
    assert status == 0
    assert {Path(name).suffix for name in json.loads(out)} == {".parquet"}


def test_a_metric_says_why_it_does_not_apply_unless_quiet(ask: Ask) -> None:
    words = ("metric", "--trace", EXAMPLE, "--framework", "jax", "--phase", "decode", "--metric", "ttft")
    assert ask(*words) == (0, "-1\n", "ttft: this is a decode step, which gives no first token\n")
    assert ask(*words, "--quiet") == (0, "-1\n", "")
