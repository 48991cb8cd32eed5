"""Searches of several programs at once, on measurements that are written by hand."""

from dataclasses import dataclass, field, replace

import pytest

from compare.remedy.measure import ArmProgram, find_witnesses, search
from compare.remedy.report import search_report
from compare.remedy.search import Measurement
from compare.run.arms import ARMS
from meshes.case import Case
from meshes.variants import PIN, VARIANTS, Variant

GATHER = ("layer.attention.core", "tp", "all-gather", "induced", "activation-gather")
BUBBLE = ("layer.mlp.down", "tp", "all-reduce", "inflated", "bubble")


@dataclass
class Table:
    """Stands for what compiles and judges: a program's groups by its remedies."""

    most: int = 99
    compiles: int = 0
    rounds: list = field(default_factory=list)

    def make(self, wanted):
        taken = wanted[: self.most - self.compiles]
        self.rounds.append([(program.arm.name, program.case.phase, *sorted(names)) for program, names in taken])
        for program, names in wanted[len(taken) :]:
            program.refused.add(names)
        self.compiles += len(taken)
        for program, names in taken:
            program.known[names] = self.measured(program, names)

    @staticmethod
    def measured(program, names):
        if "style-explicit" in names and program.arm.name == "torchxla":
            return Measurement(error="not offered: it has no permutes by hand")
        # Groups of a phase are of other sizes; one form helps by halves; JAX's call gathers nothing.
        gathers = {"prefill": 80, "decode": 20}[program.case.phase] * (program.arm.name == "torchxla")
        gathers = gathers // 2 if "attention-kv-grouped" in names else gathers
        gone = names & {"attention-einsum", "attention-heads-first", "attention-per-sequence"}
        groups = {GATHER: 0 if gone else gathers, BUBBLE: 10 // (1 + ("microbatches-8" in names))}
        if "style-explicit" in names:
            groups = {}
        step = 50.0 if "attention-per-sequence" in names else 60.0
        return Measurement(groups={key: amount for key, amount in groups.items() if amount}, step_ns=step)


def run_search(table, *, arms=("torchxla",), phases=("prefill", "decode")):
    case = Case.read("tp4pp2", phases=phases)
    programs = [ArmProgram(ARMS[arm], case.at(phases=(phase,))) for arm in arms for phase in phases]
    search(programs, table)
    return programs, search_report(case, programs, table, beside=find_witnesses(programs, table))


def test_both_phases_take_one_change_and_say_what_it_removes():
    programs, result = run_search(Table())
    assert [program.best for program in programs] == [{"attention-per-sequence"}] * 2
    prefill, decode = (result["arms"]["torchxla"]["phases"][phase] for phase in ("prefill", "decode"))
    assert [(entry["name"], entry["removes_bytes"]) for entry in prefill["remedies"]] == [
        ("attention-per-sequence", 80)
    ]
    assert [entry["removes_bytes"] for entry in decode["remedies"]] == [20]
    assert [entry["name"] for entry in prefill["remedies"][0]["as_good"]] == [
        "attention-einsum",
        "attention-heads-first",
    ]
    assert (prefill["before"]["unneeded_bytes"], prefill["after"]["unneeded_bytes"]) == (90, 10)
    assert (prefill["after"]["induced_bytes"], prefill["after"]["inflated_bytes"]) == (0, 10)


def test_what_changes_the_plan_is_told_apart_and_on_top_of_the_best():
    _, result = run_search(Table(), phases=("prefill",))
    more, hand = result["arms"]["torchxla"]["phases"]["prefill"]["beyond"]
    assert (more["name"], more["with"], more["removes_bytes"], more["helps"]) == (
        "microbatches-8",
        ["attention-per-sequence"],
        5,
        True,
    )
    # A form of attention, and collectives by hand, are not one program with a form of attention: it stands alone.
    assert (hand["name"], hand["with"], hand["in_place_of"]) == ("style-explicit", [], ["attention-per-sequence"])
    assert hand["error"] == "not offered: it has no permutes by hand"


def test_what_remains_is_shown_to_be_the_forms_where_another_arm_has_it_by_hand():
    _, result = run_search(Table(), arms=("jax", "torchxla"), phases=("prefill",))
    (remaining,) = result["arms"]["jax"]["phases"]["prefill"]["remains"]
    assert remaining["gone_with"] == [{"name": "style-explicit", "kind": "hand"}]
    assert remaining["less_with"] == ["microbatches-8"]
    (other,) = result["arms"]["torchxla"]["phases"]["prefill"]["remains"]
    assert (other["cause"], other["gone_by_hand_in"]) == ("bubble", ["JAX"])


def test_an_arm_alone_is_shown_by_jax_by_hand_what_the_form_costs(monkeypatch):
    monkeypatch.setattr(type(ARMS["jax"]), "missing", lambda arm: "")
    table = Table()
    _, result = run_search(table, phases=("decode",))
    assert list(result["arms"]) == ["torchxla"]
    (left,) = result["arms"]["torchxla"]["phases"]["decode"]["remains"]
    assert (left["cause"], left["gone_by_hand_in"]) == ("bubble", ["JAX"])
    assert table.rounds[-1] == [("jax", "decode"), ("jax", "decode", "style-explicit")]


def test_without_jax_an_arm_is_not_explained_by_it(monkeypatch):
    monkeypatch.setattr(type(ARMS["jax"]), "missing", lambda arm: "jax not installed")
    _, result = run_search(Table(), phases=("decode",))
    (left,) = result["arms"]["torchxla"]["phases"]["decode"]["remains"]
    assert left["gone_by_hand_in"] == []


def test_for_a_few_bytes_of_many_no_other_plan_is_tried():
    class Large(Table):
        @staticmethod
        def measured(program, names):
            return replace(Table.measured(program, names), needed=100_001)

    _, result = run_search(Large(), phases=("prefill",))
    # 10 of 100,001 bytes are left.
    assert [beyond["name"] for beyond in result["arms"]["torchxla"]["phases"]["prefill"]["beyond"]] == [
        "style-explicit"
    ]


def test_all_programs_are_asked_for_round_by_round_and_none_twice():
    table = Table()
    run_search(table)
    assert table.rounds[0] == [("torchxla", "prefill"), ("torchxla", "decode")]
    all_requested = [requested for wanted in table.rounds for requested in wanted]
    assert len(set(all_requested)) == len(all_requested) == table.compiles
    # Two default programs, four ways of attention in prefill and three in decode, what may save time in each phase,
    # twice two changes beyond, and JAX's two programs of each phase.
    timed = [
        phase
        for row in VARIANTS.values()
        if row.site != "attention" and not row.name.startswith(PIN)
        for phase in row.phases
        if "torchxla" in row.code
    ]
    assert table.compiles == 2 + 4 + 3 + len(timed) + 4 + (0 if ARMS["jax"].missing() else 4)


def test_no_more_is_compiled_than_was_allowed():
    table = Table(most=5)
    _, result = run_search(table)
    assert table.compiles == 5
    phases = result["arms"]["torchxla"]["phases"]
    # In turn: each phase had two of its remedies.
    assert [phase["name"] for phase in phases["prefill"]["remedies"]] == ["attention-einsum"]
    assert ["attention-per-sequence"] in phases["prefill"]["not_tried"]


@pytest.mark.parametrize("names", [frozenset(), frozenset({"attention-einsum"}), frozenset({"attention-heads-first"})])
def test_a_cell_is_the_default_one_with_its_changes(names):
    program = ArmProgram(ARMS["torchxla"], Case.read("tp4pp2", phases=("prefill",)))
    search([program], Table())
    cell = program.cell(names)
    assert cell.case_of(program.case) == program.with_remedies(names)
    assert cell.name == {"attention-einsum": "tpu+einsum", "attention-heads-first": "tpu+heads-first"}.get(
        next(iter(names), ""), "tpu"
    )


CACHE = {
    name: Variant(
        name=name,
        scope="layer.attention.core",
        site="cache",
        sentence=f"read the cache by {name}",
        code={arm: name for arm in ("jax", "torchxla")},
    )
    for name in ("cache-fast", "cache-slow", "cache-mixed")
}
STEPS = {"cache-fast": 0.5, "cache-slow": 1.5}
"""Step with a change ÷ without."""


class Cached(Table):
    """A cache's spelling moves no bytes: one is twice as fast, one half as slow, one better in decode alone."""

    @staticmethod
    def measured(program, names):
        measured = Table.measured(program, names)
        mixed = {"prefill": 1.1, "decode": 0.9}[program.case.phase]
        for name in names & set(CACHE):
            measured = replace(measured, step_ns=measured.step_ns * STEPS.get(name, mixed))
        return measured


@pytest.fixture
def cached(monkeypatch):
    """Variants of another site, as if they stood in the list."""
    variants = {**{name: row for name, row in VARIANTS.items() if row.site != "cache"}, **CACHE}
    monkeypatch.setattr("compare.remedy.remedies.VARIANTS", variants)
    monkeypatch.setattr("meshes.variants.VARIANTS", variants)


@pytest.mark.usefixtures("cached")
def test_a_change_that_saves_time_and_no_bytes_is_found_on_top_of_the_smallest_set():
    (prefill, _), result = run_search(Cached())
    assert (prefill.best, prefill.fastest) == ({"attention-per-sequence"}, {"attention-per-sequence", "cache-fast"})
    phase = result["arms"]["torchxla"]["phases"]["decode"]
    assert (phase["before"]["step_ns"], phase["after"]["step_ns"], phase["fastest"]["step_ns"]) == (60.0, 50.0, 25.0)
    (faster,) = phase["faster"]
    assert (faster["name"], faster["removes_bytes"], faster["saves_ns"]) == ("cache-fast", 0, 25.0)
    assert faster["measured_against"] == ["attention-per-sequence"]
    (bytes_too,) = phase["remedies"]
    assert (bytes_too["removes_bytes"], bytes_too["saves_ns"]) == (20, 10.0)


@pytest.mark.usefixtures("cached")
def test_a_wrong_remedy_is_said_to_be_wrong_and_is_in_no_list():
    """Planted: it moves no byte and takes half as long again."""
    _, result = run_search(Cached(), phases=("decode",))
    phase = result["arms"]["torchxla"]["phases"]["decode"]
    assert [(entry["name"], entry["removes_bytes"], entry["saves_ns"]) for entry in phase["slower"]] == [
        ("cache-slow", 0, -25.0)
    ]
    chosen = [entry["name"] for entry in (*phase["remedies"], *phase["faster"])]
    assert "cache-slow" not in chosen


@pytest.mark.usefixtures("cached")
def test_a_program_without_a_byte_too_many_is_searched_for_time_too():
    (jax,), result = run_search(Cached(), arms=("jax",), phases=("decode",))
    assert (jax.best, jax.fastest) == (frozenset(), {"cache-fast"})
    assert [entry["saves_ns"] for entry in result["arms"]["jax"]["phases"]["decode"]["faster"]] == [30.0]


def test_a_change_that_helps_one_phase_and_harms_the_other_is_said_so(monkeypatch):
    monkeypatch.setattr("compare.remedy.remedies.VARIANTS", {"cache-mixed": CACHE["cache-mixed"]})
    monkeypatch.setattr("meshes.variants.VARIANTS", {"cache-mixed": CACHE["cache-mixed"]})
    _, result = run_search(Cached(), arms=("jax",))
    phases = result["arms"]["jax"]["phases"]
    (faster,) = phases["decode"]["faster"]
    assert (faster["name"], faster["slower_in"], phases["prefill"]["faster"]) == ("cache-mixed", ["prefill"], [])
    assert [entry["name"] for entry in phases["prefill"]["slower"]] == ["cache-mixed"]


class Wrong(Table):
    """Every form of attention removes its bytes; that over sequences doubles the step."""

    @staticmethod
    def measured(program, names):
        measured = Table.measured(program, names)
        return replace(measured, step_ns=120.0) if "attention-per-sequence" in names else measured


def test_what_removes_bytes_and_costs_time_is_said_so_and_another_is_taken():
    (program,), result = run_search(Wrong(), phases=("decode",))
    assert program.best == {"attention-einsum"}
    phase = result["arms"]["torchxla"]["phases"]["decode"]
    assert [(entry["name"], entry["removes_bytes"], entry["saves_ns"]) for entry in phase["slower"]] == [
        ("attention-per-sequence", 20, -60.0)
    ]
