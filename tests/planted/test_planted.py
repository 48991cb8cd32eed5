"""Planted defects, compiled by libtpu: what each moves, what is said of it, and where, is as worked out by hand."""

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from compare.network.graph.expand import expand_program, number_ranks
from compare.report.build import build_report
from compare.report.differences import find_differences
from compare.report.frameworks import Candidate, split_excess
from compare.report.model.program import CollectiveRow
from compare.report.programs import JudgedProgram
from compare.report.rows import collective_row
from tests.compare.chakra.counting import check_trace
from tests.compare.energy.conserving import check_energy
from tests.laws.workers import ROOT
from tests.planted.defect import ARMS, Defect, Row, amount
from tests.planted.programs import Group, Job, groups, list_unserved, place_of
from tests.planted.table import DEFECTS, changes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(find_spec(name) for name in ("jax", "torch_xla", "libtpu")),
        reason="jax, torch_xla or libtpu is not installed",
    ),
]

Made = Callable[[Job], JudgedProgram]

CHANGES = changes()
BOTH = [row for row in DEFECTS if len(row.sites) > 1 and row.extra]
IN_ONE = [*BOTH[1::2], *(row for row in DEFECTS if len(row.sites) > 1 and row.harmless)]
"""Changes of both arms that a plain run makes in one, by turns."""


def is_long(defect: Defect, arm: str) -> bool:
    """Whether only `pytest -m long` compiles it: the second arm of `IN_ONE`, whose change the first one shows; and
    those at the size of a real model that a plain run plants at a small one."""
    if defect.name in ("down-by-output-1b", "gate-by-input-1b", "mean-before-1b", "mean-after-1b"):
        return True
    return defect in IN_ONE and arm != list(ARMS)[IN_ONE.index(defect) % 2]


def each_of(rows: list[tuple[Defect, str]]) -> pytest.MarkDecorator:
    """A case for each change of an arm."""
    cases = [
        pytest.param(row, arm, id=f"{row.name} {arm}", marks=[pytest.mark.long] if is_long(row, arm) else [])
        for row, arm in rows
    ]
    return pytest.mark.parametrize(("defect", "arm"), cases)


EVERY = each_of(list(CHANGES))
TOLD = [(row, arm) for row, arm in CHANGES if row.extra]
"""What is all inherent is no difference: of that a report says what is left unserved."""
HARMLESS = [(row, arm) for row, arm in CHANGES if row.harmless]
TITLES = {"jax": "JAX", "torchxla": "TorchXLA"}


def by_hand(written: Row) -> Group:
    named = tuple(sorted((name, number) for name, number in written.verdicts.items() if number))
    return Group(amount(written.times), written.step_bytes, named)


def rows_of(cell: JudgedProgram) -> list[CollectiveRow]:
    """The rows of a report."""
    assert cell.judgement is not None
    return [collective_row(verdict) for verdict in cell.judgement.verdicts]


@EVERY
def test_a_change_moves_what_was_worked_out_by_hand(defect: Defect, arm: str, program: Made) -> None:
    planted, plain = program(Job.of(defect, arm)), groups(program(Job.of(defect, arm).base))
    expected = {key: group for key, group in plain.items() if key not in defect.gone}
    assert set(defect.gone) <= set(plain), "what is gone was there"
    expected |= {(row.scope, row.collective): by_hand(row) for row in defect.rows}
    assert groups(planted) == expected


@EVERY
def test_its_trace_holds_what_the_reader_counts(defect: Defect, arm: str, program: Made) -> None:
    cell = program(Job.of(defect, arm))
    assert cell.module is not None
    graph = expand_program(cell.module, cell.rows, cell.case.plan, name=arm)
    assert check_trace(graph, cell.rows, number_ranks(cell.case.plan)) == len(cell.rows)


@EVERY
def test_its_energy_is_that_of_its_events_and_of_waiting_chips(defect: Defect, arm: str, program: Made) -> None:
    assert check_energy(program(Job.of(defect, arm))) > 0


@EVERY
def test_what_the_plan_asks_and_a_change_leaves_out_is_unserved(defect: Defect, arm: str, program: Made) -> None:
    expected = list_unserved(program(Job.of(defect, arm).base))
    expected |= {name: amount(text) for name, text in defect.unserved.items()}
    assert list_unserved(program(Job.of(defect, arm))) == expected


@each_of(TOLD)
def test_the_report_names_the_line_among_its_first_three_differences(defect: Defect, arm: str, program: Made) -> None:
    case = defect.setting.case(defect.phase)
    others = [program(Job(other, defect.setting.case_of_others(defect.phase))) for other in ARMS if other != arm]
    report = build_report(case, [program(Job.of(defect, arm)), *others], titles=TITLES)
    entries = report.phases[defect.phase].differences[:3]
    site = defect.sites[arm]
    name, line = site.reported if site.reported[0] else (site.file, site.new)
    text = (ROOT / ARMS[arm] / name).read_text(encoding="utf-8")
    if name == site.file:
        text = text.replace(site.old, site.new)
    where = f"{ARMS[arm]}/{name}:{place_of(text, line)}"
    assert where in [entry.source_line for entry in entries if entry.arm == arm]
    # A cause names what is there: of stages only where there are some.
    assert case.mesh.pp > 1 or not [entry for entry in entries if "stage" in entry.sentence + entry.remedy]


@each_of(HARMLESS)
def test_a_harmless_change_makes_no_difference(defect: Defect, arm: str, program: Made) -> None:
    job = Job.of(defect, arm)
    cells = {"as it is": program(job.base), "changed": program(job)}
    assert not [
        entry
        for entry in find_differences({name: rows_of(cell) for name, cell in cells.items()}, controls={})
        if entry.excess_bytes
    ]


@pytest.mark.parametrize(
    "defect", [pytest.param(row, id=row.name, marks=[pytest.mark.long] if row in IN_ONE else []) for row in BOTH]
)
def test_the_same_defect_in_both_arms_is_common(defect: Defect, program: Made) -> None:
    cells = {arm: program(Job.of(defect, arm)) for arm in defect.sites}
    rows = {arm: rows_of(cell) for arm, cell in cells.items()}
    excess = split_excess({arm: [Candidate("tpu", cells[arm].about.partitioner, rows[arm])] for arm in cells})
    extra = {arm: sum(row.excess_bytes for row in table) for arm, table in rows.items()}
    assert {arm: part.framework_induced for arm, part in excess.items()} == dict.fromkeys(cells, 0)
    assert {arm: part.common for arm, part in excess.items()} == extra
