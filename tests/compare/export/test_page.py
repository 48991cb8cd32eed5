"""docs/ccl_bench.md: its commands print what stands below them, and its table has this project's numbers."""

import re
import shlex

import pytest

from compare.ccl_bench_metrics.catalog import METRICS
from compare.ccl_bench_metrics.errors import NotApplicable
from compare.ccl_bench_metrics.subject import Request, read_subject
from tests.commands import run_here
from tests.places import EXAMPLE, ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/ccl_bench.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [part for block in CONSOLE for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ", re.MULTILINE)


def printed(command, folder):
    """What a command of the page prints, errors first; `traces` lies in a folder of the test."""
    words = [
        word.replace("traces", str(folder / "traces"), 1) if word.startswith("traces") else word
        for word in shlex.split(command)
    ]
    assert words[:2] == ["python", "-m"]
    done = run_here(words[2].removeprefix("compare."), *words[3:], environment={"NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    return (done.stderr + done.stdout).replace(f"{folder}/", "")


def test_its_commands_print_what_it_says(tmp_path):
    assert len(COMMANDS) == 6
    for part in COMMANDS:
        command, _, expected = part.partition("\n")
        found = printed(command, tmp_path)
        begins = expected.strip().removesuffix("…").strip()
        assert found.startswith(begins)
        assert expected.strip().endswith("…") or found.strip() == begins


@pytest.fixture(scope="module")
def decode():
    return read_subject(Request(trace=EXAMPLE, arm="torchxla", phase="decode"))


def test_its_table_has_our_numbers(decode):
    rows = {name: ours for name, _, ours in ROW.findall(PAGE)}
    assert len(rows) == 20
    # The bytes of single operations stand in the export alone.
    assert rows.pop("estimated_bandwidth").strip() == "4620.62"
    for name, ours in rows.items():
        try:
            found = f"{METRICS[name].measure(decode).number:.6g}"
        except NotApplicable:
            found = "-1"
        assert ours.strip() == found, name


def test_its_text_has_our_numbers(decode):
    words = {
        "coll_call_num": "ours 409",
        "traffic_window": "ours 2.76229e-05",
        "traffic_distribution": "ours 0.999928",
        "scale_up_bw_utility": "ours 20.9297",
        "bubble_size_pipeline": " and 0.2)",
        "hockney_alpha_s": "ours 9.6852e-07",
        "hockney_beta_s_per_byte": " and 1.90395e-11)",
    }
    for name, word in words.items():
        assert f"{METRICS[name].measure(decode).number:.6g}" == word.split()[-1].rstrip(")")
        assert word in " ".join(PAGE.split())
