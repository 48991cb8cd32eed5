"""The report in a terminal: 100 columns, whole numbers, no obedience."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from compare.render.report.plan_tables import print_plan
from compare.render.terminal import console
from compare.report.plan import plan
from meshes.case import Case
from meshes.process.one_line import plain
from tests.compare.render.from_json import print_report, show
from tests.compare.render.reports import make_report
from tests.compare.render.timings import add_times

Report = dict[str, Any]
CASE = Case.read("tp4pp2")


def print_text(report: Report, *, details: bool = True) -> list[str]:
    out = StringIO()
    print_report(report, out=console(out), details=details)
    return out.getvalue().splitlines()


def test_the_sentence_comes_first_and_nothing_is_wider_than_100_columns(report: Report) -> None:
    lines = print_text(report)
    assert " ".join(lines[:3]) == report["sentence"]
    assert max(map(len, lines)) <= 100


def test_the_headline_has_a_line_for_each_program(report: Report) -> None:
    lines = print_text(report)
    (line,) = [line for line in lines if line.startswith("TorchXLA tpu ")]
    cells = ["TorchXLA tpu", "3.31 GB", "931 MB", "1.51 GB", "931 MB", "1.51 GB", "0 B", "1.74 ×"]
    assert re.split(r"\s{2,}", line) == cells


def test_a_long_qualifier_and_a_long_cell_cut_no_number(report: Report) -> None:
    for line in report["phases"]["prefill"]["headline"]:
        line |= {"qualifier": "at least", "ratio": 1312.4, "cell": "tpu+explicit+einsum"}
    text = "\n".join(print_text(report))
    assert text.count("at least 1,312 ×") == 4
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_difference_says_where_how_often_why_and_what_removes_it(report: Report) -> None:
    text = " ".join(" ".join(print_text(report)).split())
    assert "1 1.51 GB TorchXLA: all-gather over tp in layer.attention.core, 240 ×" in text
    assert "induced, activation-gather: a sharded activation is gathered or reduced along an axis" in text
    assert "torchxla_impl/decoder/layers.py:88; TorchXLA 1.51 GB, JAX 0 B; absent in tpu+einsum" in text


def test_small_and_common_differences_are_counted_not_dropped(report: Report) -> None:
    text = "\n".join(print_text(report))
    assert "1 smaller difference: 32 B together" in text
    causes = "bubble 839 MB, replicated 50.3 MB, wrap 41.9 MB in pipeline.shift"
    assert f"The same in JAX and TorchXLA: 931 MB beyond the plan ({causes})" in " ".join(text.split())


def test_a_default_program_that_is_not_compared_is_told_where_it_moves_something_else(report: Report) -> None:
    assert "under shardy" not in "\n".join(print_text(report))
    report["phases"]["prefill"]["arms"]["jax"]["collectives"][-1]["causes"] = {"layout-change": 32}
    text = " ".join(" ".join(print_text(report)).split())
    assert "JAX tpu, under shardy, moves 931 MB beyond the plan (bubble 839 MB" in text
    assert "layout-change 32 B); tpu+gspmd, under the partitioner of the others, is compared instead" in text


def test_a_failed_arm_is_shown_with_its_one_line(failed_report: Report) -> None:
    text = " ".join(" ".join(print_text(failed_report)).split())
    assert text.count("TorchXLA: not installed: torch, torch_xla not installed; get it with pip install") == 1
    assert text.count("get it with pip install") == 1
    assert "Largest bytes beyond the plan" in text


def test_a_reason_of_one_program_is_told_with_its_name(failed_report: Report) -> None:
    line = failed_report["phases"]["prefill"]["headline"][3]
    line |= {"status": "crashed", "error": "died of SIGABRT"}
    text = " ".join(" ".join(print_text(failed_report)).split())
    assert "TorchXLA tpu: not installed: torch, torch_xla" in text
    assert "TorchXLA tpu+einsum: crashed: died of SIGABRT" in text


def test_what_the_cells_and_a_dash_mean_is_told_once(report: Report) -> None:
    report["phases"]["decode"] = report["phases"]["prefill"]
    lines = print_text(report)
    assert lines.count("JAX tpu+gspmd, the same program under the GSPMD partitioner: no change") == 1
    assert len([line for line in lines if line.startswith("–: not compared;")]) == 1


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "width"), [(40, 60), (60, 60), (72, 72), (90, 90), (200, 100)])
def test_a_terminal_s_own_width_is_kept_and_no_number_is_cut(
    report: Report, monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    for draw in (
        lambda out: print_report(report, out=out, details=True),
        lambda out: print_plan(plan(CASE), out=out),
    ):
        file = Terminal()
        draw(console(file))
        lines = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()
        assert max(map(len, lines)) <= width
        assert "…" not in file.getvalue()
        assert not [line for line in lines if line.endswith(" ×") and not re.search(r"\d ×$", line)]
        assert any("3.31 GB" in line for line in lines)


def test_a_difference_of_several_lines_tells_the_one_with_the_most_bytes_first(report: Report) -> None:
    rows = report["phases"]["prefill"]["arms"]["torchxla"]["collectives"]
    rows[2]["source_line"] = rows[3]["source_line"] = "torchxla_impl/decoder/cache.py:73"
    text = " ".join(" ".join(print_text(report)).split())
    assert "torchxla_impl/decoder/layers.py:88 (1.01 GB, and 1 more); TorchXLA 1.51 GB" in text


def test_a_program_that_could_not_be_counted_says_so(report: Report) -> None:
    totals = report["phases"]["prefill"]["arms"]["jax"]["totals"]
    totals |= {"unknown_rows": 2, "upper_bound_rows": 1}
    text = " ".join(" ".join(print_text(report)).split())
    assert "JAX tpu: of 8 collectives 2 in loops of unknown trip count, in no sum, 1 counted at their upper" in text


def test_what_of_the_plan_a_program_does_not_move_is_told(report: Report) -> None:
    row = report["phases"]["prefill"]["arms"]["jax"]["served"][3]
    row |= {"served_bytes": 0, "unserved_bytes": row["step_wire_bytes"]}
    text = " ".join(" ".join(print_text(report)).split())
    assert (
        "¹ JAX tpu, JAX tpu+gspmd, TorchXLA tpu and TorchXLA tpu+einsum do not move all of the plan: "
        "collective-permute over pp in pipeline.shift, 33.6 MB of 33.6 MB" in text
    )
    assert text.count("× ¹") == 4  # the example's programs share these rows


def test_what_a_reader_must_know_of_the_plan_stands_with_it(report: Report) -> None:
    report["phases"]["prefill"]["notes"] = ["The 8 KV heads stand 2 times."]
    assert "The 8 KV heads stand 2 times." in print_text(report)


def test_no_line_ends_inside_a_number(report: Report) -> None:
    report["sentence"] = "it moves 1.7 × what the plan needs, which is 3.31 GB, and 84 % of it is one thing " * 5
    for line in print_text(report)[:6]:
        assert not line.rstrip().endswith(("1.7", "3.31", "84"))


def test_escape_sequences_and_markup_of_a_program_are_not_obeyed(report: Report) -> None:
    hostile = "\x1b[2Jscope[red]\r\nnext\x07"
    assert plain(hostile) == "\N{REPLACEMENT CHARACTER}[2Jscope[red] next\N{REPLACEMENT CHARACTER}"
    for entry in report["phases"]["prefill"]["differences"]:
        entry |= {"scope": hostile, "source_line": hostile, "sentence": hostile}
    report["sentence"] = hostile
    text = "\n".join(print_text(report))
    assert "\x1b" not in text and "\x07" not in text and "scope[red]" in text  # noqa: PT018


def test_the_plan_has_each_row_with_its_formula() -> None:
    out = StringIO()
    print_plan(plan(Case.read("tp4pp2")), out=console(out))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert "Prefill: 3.31 GB per step, mean over devices" in lines
    row = next(line for line in lines if "layer.mlp.down" in line)
    assert row.split() == ["layer.mlp.down", "all-reduce", "over", "tp", "64", "16.8", "MB", "25.2", "MB", "1.61", "GB"]
    assert "(L/pp)·m = (32/2)·4 times t·D·b = 2048·4096·2" in out.getvalue()


def test_a_plan_says_what_copies_of_kv_heads_cost() -> None:
    out = StringIO()
    print_plan(plan(Case.read("tp8", model_name="qwen3-30b-a3b")), out=console(out))
    words = " ".join(out.getvalue().split())
    assert (
        "Each of the 4 KV heads is stored 2 times, so that every shard of tp8 has as many: the cache is 2 × as large"
        in words
    )


def test_a_plan_that_needs_nothing_says_so() -> None:
    out = StringIO()
    print_plan(plan(Case.read("dp4", model_name="tiny")), out=console(out))
    assert out.getvalue().count("Nothing: this mesh splits no tensor") == 2


def test_the_last_line_is_the_page_s_path_whole(capsys: pytest.CaptureFixture[str]) -> None:
    place = Path("/runs") / ("long" * 60) / "report.html"
    show(make_report(), place.parent, details=False)
    assert capsys.readouterr().out.splitlines()[-1] == str(place)


def test_each_phase_has_its_times_and_what_of_the_wait_nobody_needed(report: Report) -> None:
    lines = print_text(add_times(report))
    at = lines.index("Prefill: time per step, modelled")
    assert lines[at + 1] == "Modelled for v5e:2x4 (not measured)"
    table = lines[at + 2 : at + 9]
    assert table[0].split() == ["communi-", *["exposed"] * 3]
    assert table[1].split() == [
        "program",
        "step",
        "compute",
        "cation",
        "hidden",
        "exposed",
        "inherent",
        "inflated",
        "induced",
    ]
    assert " ".join(table[5].split()) == ("TorchXLA tpu 117 ms 56.5 ms 65.0 ms 4.50 ms 60.5 ms 38.6 ms 9.90 ms 12.0 ms")
    cells = " ".join(" ".join(lines).split())
    assert "Prefill: time per step, measured on CPU devices" in cells
    assert "Measured on 8 virtual CPU devices (torch_xla), not a TPU; embed 4096 → 256 (TorchXLA cpu)" in cells
    assert (
        "Largest avoidable exposed communication, TorchXLA tpu: 12.0 ms all-gather over tp in "
        "layer.attention.core (activation-gather); 4.80 ms all-reduce over tp in layer.attention.out (bubble)"
    ) in cells
    assert max(map(len, lines)) <= 100


def test_of_cpu_devices_it_is_told_who_waits_for_whom_and_what_the_host_takes(report: Report) -> None:
    # 80 layers of 400 and 200 µs of waiting; all of the step computes or communicates.
    add_times(report)
    text = " ".join(" ".join(print_text(report)).split())
    assert "TorchXLA cpu: 48.0 ms of its communication is waiting for other devices" in text
    assert "a step begins on the host" not in text
    times = report["phases"]["prefill"]["arms"]["torchxla"]["profiles"]["cpu"]["timing"]["per_step"]
    times["step_ns"] += 41_000_000
    text = " ".join(" ".join(print_text(report)).split())
    assert "other devices; 41.0 ms of its step is neither (a step begins on the host)" in text


def test_where_nothing_differs_that_is_said(report: Report) -> None:
    phase = report["phases"]["prefill"]
    phase["differences"] = [entry for entry in phase["differences"] if not entry["excess_bytes"]]
    assert "No significant difference between the frameworks." in print_text(report)


def test_a_narrow_terminal_has_the_times_as_sentences(report: Report) -> None:
    out = StringIO()
    narrow = console(out)
    narrow.width = 60
    print_report(add_times(report), out=narrow, details=True)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    words = "TorchXLA tpu: step 117 ms, compute 56.5 ms, communication 65.0 ms, hidden 4.50 ms, exposed 60.5 ms"
    assert words in " ".join(" ".join(lines).split())


def test_without_times_nothing_is_said_of_them(report: Report) -> None:
    assert "time per step" not in "\n".join(print_text(report))
