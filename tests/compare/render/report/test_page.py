"""The page: one file, nothing from a program unescaped, small whatever the program."""

import copy
import re
from html import unescape
from itertools import pairwise
from typing import Any

import pytest

from tests.compare.render.from_json import page, pictures
from tests.compare.render.reports import make_report

Report = dict[str, Any]

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def html() -> str:
    report = make_report()
    return page(report, pictures=pictures(report))


def test_the_page_begins_with_the_sentence_and_has_every_part(html: str, report: Report) -> None:
    text = " ".join(re.sub(r"<[^>]*>", " ", html.partition("<body>")[2]).replace("\N{NO-BREAK SPACE}", " ").split())
    assert report["sentence"] in unescape(text)
    for part in ("why-prefill", "story-prefill", "mesh", "figures", "plan", "honesty", "glossary"):
        assert f'id="{part}"' in html
        assert f'href="#{part}"' in html


def test_nothing_is_fetched_and_no_script_runs(html: str) -> None:
    assert "<script" not in html
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", html)
    assert "url(" not in html
    assert "default-src 'none'" in html


def test_everything_that_a_program_wrote_is_escaped(report: Report) -> None:
    # A case is refused unless all of its words are known.
    html = page(_hostile(report) | {"case": report["case"]}, pictures=pictures(report))
    assert "<script" not in html
    assert "<img src=x" not in html
    assert "&lt;script&gt;" in html


def _hostile(value: Any) -> Any:
    """The same report with every word of a program replaced; what the templates look words up by stays."""
    kept = {"arm", "status", "verdict", "network", "executions_are", "cell", "phases"}
    if isinstance(value, dict):
        return {
            name: inner if name in kept and isinstance(inner, str) else _hostile(inner) for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_hostile(inner) for inner in value]
    return value + HOSTILE if isinstance(value, str) and value not in ("tpu", "tpu+gspmd", "tpu+einsum") else value


def test_a_difference_carries_its_evidence(report: Report) -> None:
    html = page(report).replace("\N{NO-BREAK SPACE}", " ")
    section = html[html.index('<details class="finding induced">') :]
    section = section[: section.index("</details>")]
    for word in (
        "240 ×",
        "torchxla_impl/decoder/layers.py:88",
        "absent in",
        "%all-gather.11 = bf16",
        "requires nothing here",
    ):
        assert word in section


def test_a_difference_that_serves_the_plan_shows_the_contract_row(report: Report) -> None:
    html = page(report)
    alike = html[html.index("The same in JAX and TorchXLA") :]
    assert "(L/pp)·m = (32/2)·4 times t·D·b" in alike[: alike.index("</section>")]


def test_an_unrolled_program_stays_small(report: Report) -> None:
    unrolled = copy.deepcopy(report)
    phase = unrolled["phases"]["prefill"]
    for arm in phase["arms"].values():
        for cell in (arm, *arm["controls"].values()):
            rows = [
                {**row, "name": f"{row['name']}.{copy_number}", "executions": 1, "loops": []}
                for row in cell["collectives"]
                for copy_number in range(160)
            ]
            cell["collectives"] = rows
    for entry in phase["differences"]:
        entry["names"] = [f"{name}.{at}" for name in entry["names"] for at in range(160)]
    assert len(phase["arms"]["torchxla"]["collectives"]) > 1000
    assert len(page(unrolled)) < 1.3 * len(page(report))
    assert "160 instructions" in page(unrolled)


def test_a_long_line_of_hlo_is_cut(report: Report) -> None:
    for row in report["phases"]["prefill"]["arms"]["torchxla"]["collectives"]:
        row["hlo"] = "x" * 100_000
    assert "x" * 1600 not in page(report)


def test_a_failed_arm_has_its_reason_on_the_page(failed_report: Report) -> None:
    html = page(failed_report)
    assert html.count("torch, torch_xla not installed") >= 1
    assert "Largest bytes beyond the plan" in html


@pytest.mark.parametrize("phases", [("prefill",), ("decode",), ("prefill", "decode")])
def test_ids_are_unique_and_headings_do_not_skip(report: Report, phases: tuple[str, ...]) -> None:
    report["phases"] = {phase: report["phases"]["prefill"] for phase in phases}
    html = page(report)
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    levels = [int(level) for level in re.findall(r"<h(\d)", html)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_guess_of_a_time_is_not_shown_and_what_was_compiled_is_tables(report: Report) -> None:
    report["phases"]["prefill"]["arms"]["jax"] |= {
        "cost": {"flops": 1.4e13, "bytes_accessed": 2e9, "optimal_s": 0.123456, "loop_bodies": "counted once"},
        "seconds": {"compile": {"import": 0.38}},
    }
    html = page(report).replace("\N{NO-BREAK SPACE}", " ")
    assert "optimal s" not in html
    assert "optimal_s" not in html
    assert "0.123" not in html
    honesty = html[html.index('id="honesty"') :]
    for what, words in (
        ("flops", "14,000,000,000,000"),
        ("bytes accessed", "2.00 GB"),
        ("loop bodies", "counted once"),
        ("compile import", "0.38 s"),
        ("temp bytes", "410 MB"),
    ):
        assert f'<tr><th scope="row">{what}</th><td>{words}</td></tr>' in honesty
    assert "<pre" not in honesty


def test_words_in_backticks_are_code_and_still_escaped(report: Report) -> None:
    for entry in report["phases"]["prefill"]["differences"]:
        entry |= {"remedy": "call `jax.lax.pin(<x>)` there", "sentence": "as `y` is"}
    html = page(report)
    assert "call <code>jax.lax.pin(&lt;x&gt;)</code> there" in html
    assert "as <code>y</code> is" in html
    assert "`" not in html[html.index("<body>") :]


def test_every_line_of_source_of_a_difference_is_shown_with_its_bytes(report: Report) -> None:
    report["phases"]["prefill"]["arms"]["torchxla"]["collectives"][1]["source_line"] = (
        "torchxla_impl/decoder/cache.py:73"
    )
    html = page(report).replace("\N{NO-BREAK SPACE}", " ")
    lines = (
        "<p><code>torchxla_impl/decoder/cache.py:73</code> 1.01 GB</p>",
        "<p><code>torchxla_impl/decoder/layers.py:88</code> 503 MB</p>",
    )
    assert "".join(lines) in html
    assert "at <code>torchxla_impl/decoder/cache.py:73</code> and 1 more" in html


def test_where_one_bar_dwarfs_the_others_the_page_says_so(report: Report) -> None:
    assert "too short to see" not in page(report)
    report["phases"]["prefill"]["headline"][2]["wire_bytes"] *= 100
    assert "too short to see has its number beside it" in page(report)


def test_one_device_is_no_devices(report: Report) -> None:
    report["mesh"] |= {"devices": report["mesh"]["devices"][:1], "groups": {}}
    assert "mean over 1 device:" in page(report)


def test_what_a_reader_must_know_of_the_plan_stands_with_it(report: Report) -> None:
    report["phases"]["prefill"]["notes"] = ["The 8 KV heads stand 2 times."]
    assert page(report).count("The 8 KV heads stand 2 times.") == 2
    assert "capacity" not in page(report).partition("</header>")[0]
    report["case"] |= {"model": {**report["case"]["model"], "experts": 8}, "capacity": None}
    assert "capacity full" in page(report).partition("</header>")[0]


def test_a_ratio_of_less_than_the_plan_bears_a_mark_and_a_footnote(report: Report) -> None:
    row = report["phases"]["prefill"]["arms"]["jax"]["served"][3]
    row |= {"served_bytes": 0, "unserved_bytes": row["step_wire_bytes"]}
    html = page(report).replace("\N{NO-BREAK SPACE}", " ")
    assert html.count("× ¹") == 2 * 4  # bar and table; the programs share these rows
    assert "TorchXLA tpu+einsum do not move all of the plan: collective-permute over pp" in html
