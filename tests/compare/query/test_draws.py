"""The draws of the model's errors, on runs whose answers are worked out by hand."""

import math
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from compare.query import query_runs
from compare.query.named_queries import read_query
from tests.compare.query.run_folders import write_run
from tests.places import ROOT

PROGRAM = {"phase": "decode", "arm": "jax", "cell": "tpu", "source": "modelled", "is_default": True}


def write_plan(folder: Path, mesh: str, *, compute_ns: float, floor: float | None = 1.0, **exposed_ns: float) -> None:
    """A decode step of one plan: its compute, that over its floor, and the exposed time of each kind of collective."""
    exposed = sum(exposed_ns.values())
    whole = {"split_by": "all", "part": "", "step_ns": compute_ns + exposed, "compute_ns": compute_ns}
    rows: list[dict[str, Any]] = [{**PROGRAM, **whole, "exposed_ns": exposed}]
    rows += [
        {**PROGRAM, "split_by": "kind", "part": kind.replace("_", "-"), "exposed_ns": ns}
        for kind, ns in exposed_ns.items()
    ]
    totals = [{**PROGRAM, "compute_over_floor": floor}]
    tables = {"times": rows, "totals": totals}
    write_run(folder / mesh.replace(":", "-"), mesh=mesh, batch=16, seq=128, tables=tables)


def holds(folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    return query_runs(f'select {", ".join(columns)} from "plan-holds"', folder).fetchall()


def test_plans_without_a_gap_are_a_toss(tmp_path: Path) -> None:
    write_plan(tmp_path, "tp8@v6e:2x4", compute_ns=100.0, all_reduce=100.0)
    write_plan(tmp_path, "dp2tp4@v6e:2x4", compute_ns=100.0, all_reduce=100.0)
    ((plans, mesh, own, shared, share),) = holds(
        tmp_path, "plans", "mesh", "own_errors_share", "shared_errors_share", "holds_share"
    )
    assert (plans, mesh) == (2, "dp2tp4")
    assert own == pytest.approx(0.5, abs=0.065)  # 1,000 draws: four standard errors
    assert shared == 0.5  # the same errors: they are equal in every draw
    assert share == min(own, shared)


def test_a_plan_that_is_far_ahead_holds_in_every_draw(tmp_path: Path) -> None:
    write_plan(tmp_path, "tp8@v6e:2x4", compute_ns=1.0, all_gather=1.0)
    write_plan(tmp_path, "dp2tp4@v6e:2x4", compute_ns=1e6, all_gather=1e6)
    assert holds(tmp_path, "mesh", "next_mesh", "next_over_fastest", "holds_share") == [("tp8", "dp2tp4", 1e6, 1.0)]


def test_shared_errors_move_all_plans_alike_and_own_ones_do_not(tmp_path: Path) -> None:
    write_plan(tmp_path, "tp8@v6e:2x4", compute_ns=100.0)
    write_plan(tmp_path, "dp2tp4@v6e:2x4", compute_ns=110.0)
    ((own, shared, share),) = holds(tmp_path, "own_errors_share", "shared_errors_share", "holds_share")
    # Products of v6e: width -ln(1 - 0.09) / 0.6745 = 0.1398, of the difference of two 0.1977; ln 1.1 = 0.0953.
    expected = 0.5 * (1 + math.erf(0.0953 / 0.1977 / math.sqrt(2)))
    assert (own, shared) == (pytest.approx(expected, abs=0.065), 1.0)
    assert share == own


def drawn(folder: Path, errors: str = "own") -> list[float]:
    rows = query_runs(f"""select ln(drawn_ns / step_ns) from "step-draws" where errors = '{errors}'""", folder)
    return [value for (value,) in rows.fetchall()]


WIDEST = -math.log(1 - 0.49)
"""Of all medians: tpu7x's all-reduces."""

WIDEST_OF_COMPUTE = -math.log(1 - 0.16)
"""tpu7x's products."""


@pytest.mark.parametrize(
    ("mesh", "parts", "expected"),
    [
        ("tp8@v6e:2x4", {"compute_ns": 0.0, "all_reduce": 100.0}, -math.log(1 - 0.18)),
        # The largest error is the further one: |ln(1 - 0.34)| / 2 is a standard deviation.
        ("tp8@v6e:2x4", {"compute_ns": 0.0, "all_to_all": 100.0}, -math.log(1 - 0.34) / 2 * 0.6745),
        ("tp8@v6e:2x4", {"compute_ns": 100.0}, -math.log(1 - 0.09)),
        # No all-gather of v6e was ever measured, and one permute is too few.
        ("tp8@v6e:2x4", {"compute_ns": 0.0, "all_gather": 100.0}, WIDEST),
        ("tp8@v6e:2x4", {"compute_ns": 0.0, "collective_permute": 100.0}, WIDEST),
        ("dp2tp8@2xv6e:2x4", {"compute_ns": 0.0, "all_reduce": 100.0}, WIDEST),  # between slices, either
        ("tp8@v6e:2x4", {"compute_ns": 100.0, "floor": None}, WIDEST_OF_COMPUTE),  # not known
    ],
)
def test_half_of_the_draws_are_off_by_more_than_the_published_median(
    tmp_path: Path, mesh: str, parts: dict[str, Any], expected: float
) -> None:
    write_plan(tmp_path, mesh, **parts)
    for errors in ("own", "shared"):
        draws = drawn(tmp_path, errors)
        assert median(map(abs, draws)) == pytest.approx(expected, rel=0.08)
        assert len(draws) == 1000


def test_compute_beyond_its_floor_has_an_error_of_its_own(tmp_path: Path) -> None:
    """Of 400 ns a quarter is what the case needs; the rest is as the same 300 ns of a program without a known floor."""
    write_plan(tmp_path / "a", "tp8@v6e:2x4", compute_ns=400.0, floor=4.0)
    write_plan(tmp_path / "b", "tp8@v6e:2x4", compute_ns=300.0, floor=None)
    write_plan(tmp_path / "c", "tp8@v6e:2x4", compute_ns=100.0, floor=1.0)
    whole, rest, floor = (drawn(tmp_path / name, "shared") for name in "abc")
    for one, other, least in zip(whole, rest, floor, strict=True):
        assert math.exp(one) * 400 == pytest.approx(math.exp(other) * 300 + math.exp(least) * 100, abs=0.01)


def test_the_same_runs_have_the_same_draws_and_other_runs_have_others(tmp_path: Path) -> None:
    write_plan(tmp_path / "a", "tp8@v6e:2x4", compute_ns=100.0)
    write_plan(tmp_path / "a", "dp2tp4@v6e:2x4", compute_ns=100.0)
    first = query_runs('select run, errors, draw, drawn_ns from "step-draws"', tmp_path / "a").fetchall()
    assert query_runs('select run, errors, draw, drawn_ns from "step-draws"', tmp_path / "a").fetchall() == first
    runs = {run for run, *_ in first}
    by_run = {run: [ns for name, errors, _, ns in first if (name, errors) == (run, "own")] for run in runs}
    one, other = by_run.values()
    assert one != other


def test_at_other_link_rates_what_is_exposed_takes_twice_or_half_as_long(tmp_path: Path) -> None:
    write_plan(tmp_path, "tp8@v6e:2x4", compute_ns=100.0, all_reduce=60.0)  # 160; 220 at half the rate, 130 at twice
    write_plan(tmp_path, "dp2tp4@v6e:2x4", compute_ns=150.0, all_reduce=20.0)  # 170; 190; 160
    assert holds(tmp_path, "mesh", "mesh_at_half_rate", "mesh_at_double_rate") == [("tp8", "dp2tp4", "tp8")]


def test_with_half_of_the_compute_beyond_its_floor_another_plan_may_be_the_fastest(tmp_path: Path) -> None:
    write_plan(tmp_path, "tp8@v6e:2x4", compute_ns=100.0, floor=1.0)
    write_plan(tmp_path, "dp2tp4@v6e:2x4", compute_ns=120.0, floor=3.0)  # 80 beyond: 80 with half of it
    assert holds(tmp_path, "mesh", "mesh_at_half_other") == [("tp8", "dp2tp4")]


def test_the_published_errors_are_those_of_the_model_s_page() -> None:
    page = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    row = r"^\| (\w+) ([a-z-]+), device \| (\d+) \| (\d+)% \| ([+-]?\d+)% \|$"
    expected = {
        (generation, part, int(n), int(middle), int(largest))
        for generation, part, n, middle, largest in re.findall(row, page, re.M)
    }
    rows = re.findall(r"\('(\w+)', '([a-z-]+)', (\d+), ([\d.]+), (-?[\d.]+)\)", read_query("model-errors"))
    assert len(expected) == 11
    assert expected == {
        (generation, part, int(n), round(100 * float(middle)), round(100 * float(largest)))
        for generation, part, n, middle, largest in rows
    }
