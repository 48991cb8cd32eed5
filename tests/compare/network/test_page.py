"""docs/network.md says what the runs and the code say."""

import re

from tests.compare.network.astra_sim_runs import read_runs
from tests.compare.network.test_equality import RULES
from tests.compare.network.test_graph_equality import RUNS
from tests.compare.simulate.graphs.test_graphs import RAN
from tests.places import ROOT, example_report

PAGE = (ROOT / "docs/network.md").read_text(encoding="utf-8")


def test_the_table_of_equality_has_rows_of_the_runs():
    rows = re.findall(
        r"^\| ([a-z-]+) \| ([\d,]+) \| ([a-z:\d,-]+) \| (\S+) \| (\S+) \| (\S+) / (\S+) / (\S+) \| (\S+) "
        r"\| (\w+) \| ([\d,]+) \|$",
        PAGE,
        re.MULTILINE,
    )
    assert len(rows) >= 70
    runs = set()
    for run in read_runs():
        words = run.words
        if set(words["bandwidth"].split(",")) == {"90"} and set(words["latency"].split(",")) == {"1000"}:
            runs.add(
                (
                    words["collective"],
                    f"{run.collective.num_bytes:,}",
                    words["dims"],
                    words["algorithm"],
                    words["multi"],
                    words["chunks"],
                    words["active"],
                    words["queues"],
                    words["group"] or "all",
                    words["backend"],
                    f"{run.last:,}",
                )
            )
    assert set(rows) <= runs


def test_the_page_counts_runs_and_rules():
    assert f"holds {len(read_runs())} runs" in PAGE
    assert f"any one of {len(RULES)} rules" in PAGE


def test_the_page_counts_graphs():
    stuck = sum(not run["cycles"] for run in RUNS)
    assert f"holds {len(RUNS)} graphs" in PAGE
    assert f"{stuck} of them never end there" in PAGE


def test_the_programs_of_the_page_are_those_of_the_example_run():
    rows = re.findall(
        r"^\| (JAX|PyTorch/XLA) (\w+) \| \d+ \| (\S+) / (\S+) \| (\S+) / (\S+) \| (\S+) / (\S+) \|$", PAGE, re.MULTILINE
    )
    assert len(rows) == 4
    for title, phase, *numbers in rows:
        arm = {"JAX": "jax", "PyTorch/XLA": "torchxla"}[title]
        timing = example_report()["phases"][phase]["arms"][arm]["timing"]["per_step"]
        ran = RAN[f"{arm}/{phase}/tpu"]
        ours = [timing["step_ns"] / 1000, timing["exposed_ns"] / 1000]
        assert numbers == [
            *(f"{us:,.1f}" for us in ours),
            *(f"{ticks / 1e6:,.1f}" for ticks in ran),
            *(f"{ticks:,}" for ticks in ran),
        ]
