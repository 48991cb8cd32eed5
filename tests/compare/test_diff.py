"""`python -m compare.diff`: two programs or two runs in; nothing, a line each, or one line that says why not."""

import gzip
import json
import shutil
from time import process_time

import pytest

from compare.cli.diff import main
from tests.commands import check_refusal, run_here, run_process
from tests.compare.verdict.toy_hlo import BACK, GATHER, HOP, SUM, program, wire
from tests.places import EXAMPLE as RUN

AXES = ("--axes", "data=2,tensor=4")
INJECTED = wire("all-gather", "bf16[128,1024]", result="bf16[512,1024]", scope="layer.attention.qkv")


@pytest.fixture
def files(tmp_path):
    def write(*programs):
        paths = [tmp_path / f"{name}.hlo" for name in "ab"]
        for path, wires in zip(paths, programs, strict=True):
            path.write_text(program(*wires))
        return [str(path) for path in paths]

    return write


def test_the_same_twice_is_an_empty_diff_and_exit_0(files, capsys):
    a, b = files([SUM, GATHER], [SUM, GATHER])
    assert main([a, b, *AXES]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No difference: 2 collectives match."
    assert main([a, b, *AXES, "--json"]) == 0
    diff = json.loads(capsys.readouterr().out)
    assert (diff["same"], diff["differences"], diff["equivalents"]) == (True, [], [])
    assert diff["alike"] == {
        "collectives": 2,
        "step_wire_bytes": 786_432 + 393_216,
        "in_another_order": 0,
        "of_other_neighbours": [],
    }


def test_one_injected_gather_is_one_line_and_exit_1(files, capsys):
    a, b = files([SUM, GATHER, SUM], [SUM, INJECTED, GATHER, SUM])
    assert main([a, b, *AXES]) == 1
    printed = capsys.readouterr().out.splitlines()
    (line,) = [line for line in printed if line.startswith(("+ ", "− ", "~ ")) and " over " in line]
    for word in ("+786 kB", "all-gather over tensor", "layer.attention.qkv", "1 × 1.05 MB", "model.py:7"):
        assert word in line
    assert max(map(len, printed)) <= 100
    assert main([a, b, *AXES, "--json"]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert (difference["what"], difference["a"], difference["b"], difference["delta_bytes"]) == (
        "only in b",
        [],
        ["c1"],
        786_432,
    )


def test_another_form_of_the_same_bytes_is_told_and_no_difference(files, capsys):
    a, b = files([SUM, GATHER], [SUM, HOP, HOP, BACK])
    assert main([a, b, *AXES]) == 0
    printed = capsys.readouterr().out
    assert "1 all-gather over tensor = 3 collective-permute over tensor" in printed
    assert "No difference: 1 collective matches, 1 equivalent in another form." in printed


def test_the_page_holds_the_evidence_and_obeys_nothing_in_it(files, tmp_path, capsys):
    a, b = files([SUM], [SUM, INJECTED.replace("model.py", "<script>alert(1)</script>.py")])
    page = tmp_path / "diff.html"
    assert main([a, b, *AXES, "--html", str(page)]) == 1
    html = page.read_text()
    assert "all-gather over tensor" in html
    assert "replica_groups={{0,1,2,3},{4,5,6,7}}" in html
    assert "<script" not in html
    assert "default-src 'none'" in html


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.hlo", "nothing.hlo"), "nothing.hlo: No such file"),
        (("a.hlo", "."), "is not a run folder"),
        ((".", "."), "is not a run folder (no case.json in it), nor a cell of one"),
        ((RUN, RUN / "jax" / "prefill" / "tpu"), "is a run folder and"),
        (("a.hlo", "a.hlo", "--axes", "x=6"), "6 devices"),
        (("a.hlo", "text.hlo"), "text.hlo: not HLO text"),
        (("a.hlo", "half.gz"), "half.gz: the gzip file is cut"),
        (("a.hlo", "bytes.pb"), "bytes.pb: "),
        ((RUN, RUN, "--axes", "x=8"), "run folders record their mesh"),
        (("a.hlo",), "required"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, words, said):
    (tmp_path / "a.hlo").write_text(program(SUM))
    (tmp_path / "text.hlo").write_text("import this\n")
    (tmp_path / "half.gz").write_bytes(gzip.compress(b"HloModule")[:15])
    (tmp_path / "bytes.pb").write_bytes(b"\x7fELF\x00\x01\xff\xfe")
    done = run_here(
        "diff", *[tmp_path / word if str(word).endswith((".hlo", ".gz", ".pb", ".")) else word for word in words]
    )
    check_refusal(done, said)


def test_a_refusal_of_a_process_is_its_last_word():
    done = run_process("-m", "compare.diff", RUN, RUN / "jax" / "prefill" / "tpu")
    check_refusal(done, "is a run folder and")


def test_a_run_is_the_same_as_itself(capsys):
    assert main([str(RUN), str(RUN)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "The two runs move the same bytes."


def test_two_cells_of_a_run_are_two_programs(capsys):
    """What the control shows: PyTorch/XLA's attention gathers, the same as einsum does not."""
    cells = [str(RUN / "torchxla" / "decode" / cell) for cell in ("tpu", "tpu+einsum")]
    assert main([*cells, "--json"]) == 1
    diff = json.loads(capsys.readouterr().out)
    assert diff["axes"] == {"pp": 2, "tp": 4}
    assert {(difference["what"], difference["kind"], difference["scope"]) for difference in diff["differences"]} == {
        ("only in a", "all-gather", "layer.attention.core")
    }


@pytest.fixture
def upgraded(tmp_path):
    """The example run, as if an upgrade had written PyTorch/XLA's attention as einsum and JAX's cell had failed."""
    run = tmp_path / "run"
    shutil.copytree(RUN, run, ignore=shutil.ignore_patterns("figures", "tables", "*.html"))
    old, new = run / "torchxla" / "decode" / "tpu", run / "torchxla" / "decode" / "tpu+einsum"
    about = json.loads((new / "about.json").read_text()) | {"cell": "tpu"}
    about["versions"]["torch_xla"] = "2.10.0"
    (old / "about.json").write_text(json.dumps(about))
    shutil.copyfile(new / "optimized.hlo.gz", old / "optimized.hlo.gz")
    shutil.rmtree(run / "jax" / "prefill" / "tpu+gspmd")
    return run


@pytest.mark.slow
def test_what_an_upgrade_changed_is_told_program_by_program(upgraded, tmp_path, capsys):
    assert main([str(RUN), str(upgraded), "--json", "--html", str(tmp_path / "page.html")]) == 1
    diff = json.loads(capsys.readouterr().out)
    assert diff["versions"]["torch_xla"] == ["2.9.0", "2.10.0, 2.9.0"]
    assert diff["only_in_a"] == [["jax", "prefill", "tpu+gspmd"]]
    assert diff["case_changes"] == {}
    programs = {(entry["arm"], entry["phase"], entry["cell"]): entry for entry in diff["programs"]}
    changed = programs["torchxla", "decode", "tpu"]
    assert changed["totals"]["induced"][1] == 0 < changed["totals"]["induced"][0]
    assert {entry["kind"] for entry in changed["differences"]} == {"all-gather"}
    assert sum(entry["delta_bytes"] for entry in changed["differences"]) == -changed["totals"]["induced"][0]
    assert programs["jax", "decode", "tpu"]["same"]
    assert "torch_xla 2.9.0 → 2.10.0, 2.9.0" in (tmp_path / "page.html").read_text()
    main([str(RUN), str(upgraded)])
    printed = capsys.readouterr().out
    assert "TorchXLA decode tpu\n  moved 571 MB → 4.07 MB" in printed
    assert printed.splitlines()[-1] == "The two runs differ."


@pytest.mark.slow
def test_two_files_of_3_mb_full_of_collectives_take_a_time_in_proportion(tmp_path, capsys):
    """Four times as many take about four times as long; a match of each with each would take sixteen times."""
    seconds = []
    for rows in (2_750, 11_000):
        wires = [wire("all-reduce", f"bf16[{256 + number},1024]") for number in range(rows)]
        paths = [tmp_path / "a.hlo", tmp_path / "b.hlo"]
        paths[0].write_text(program(*wires))
        paths[1].write_text(program(*wires[: rows // 2], INJECTED, *wires[rows // 2 :]))
        begun = process_time()
        assert main([*map(str, paths), *AXES]) == 1
        seconds.append(process_time() - begun)
        assert capsys.readouterr().out.splitlines()[-1] == f"1 difference; {rows:,} collectives match."
    assert paths[0].stat().st_size > 3_000_000
    assert seconds[1] < 8 * seconds[0]
