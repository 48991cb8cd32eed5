"""The search for the smallest set, on programs that are tables: what each set leaves is known by hand."""

from itertools import combinations

import pytest

from compare.remedy.remedies import PLAN, TIME, Remedy
from compare.remedy.search import Measurement, Search, is_better, is_faster, saves_bytes

CORE, MLP = ("layer.attention.core", "tp"), ("layer.mlp.up", "tp")


def measurement(core=0, mlp=0, **more):
    """Induced bytes at two places."""
    rows = {
        (*CORE, "all-gather", "induced", "activation-gather"): core,
        (*MLP, "all-gather", "induced", "activation-gather"): mlp,
    }
    return Measurement(groups={key: amount for key, amount in rows.items() if amount}, **more)


def remedy(name, site="", **more):
    return Remedy(name=name, scope="", site=site or name, sentence="", code="", **more)


def run_search(remedies, leaves, *, base=None, most=100):
    """The set that is found, and the sets that were measured; leaves: a set of names -> what it leaves."""
    search, requested = Search(base or leaves(frozenset()), remedies), []
    steps, answers = search.steps(), None
    try:
        while True:
            wanted = steps.send(answers) if answers is not None else next(steps)
            assert not set(wanted) & set(requested), "nothing is measured twice"
            answers = {names: leaves(names) for names in wanted[: most - len(requested)]}
            requested += wanted
    except StopIteration as end:
        return end.value, requested


def test_one_that_removes_all_is_enough():
    remedies = [remedy("a", "attention"), remedy("b", "attention")]
    best, requested = run_search(remedies, lambda names: measurement(core=0 if "b" in names else 60 if names else 100))
    assert best == {"b"}
    # Both are of one site: they are never tried together.
    assert set(requested) == {frozenset("a"), frozenset("b")}


def test_where_one_change_leaves_nothing_no_pin_is_compiled():
    remedies = [remedy("pin:a"), remedy("slow"), remedy("pin:b"), remedy("fast")]
    best, requested = run_search(
        remedies, lambda names: measurement(core=0 if names & {"slow", "fast"} else 9, step_ns=1.0 + ("slow" in names))
    )
    assert best == {"fast"}
    assert set(requested) == {frozenset({"slow"}), frozenset({"fast"})}


def test_two_that_remove_different_bytes_are_taken_together():
    remedies = [remedy("a"), remedy("b"), remedy("idle")]
    best, _ = run_search(
        remedies, lambda names: measurement(core=0 if "a" in names else 70, mlp=0 if "b" in names else 30)
    )
    assert best == {"a", "b"}


def test_of_two_that_remove_the_same_one_is_dropped():
    remedies = [remedy("a"), remedy("b"), remedy("c")]
    best, _ = run_search(
        remedies, lambda names: measurement(core=0 if names & {"a", "b"} else 70, mlp=0 if "c" in names else 30)
    )
    assert len(best) == 2
    assert "c" in best


def test_what_moves_bytes_elsewhere_is_not_kept():
    """It removes 50 at one place and adds 40 at another."""
    best, _ = run_search([remedy("a")], lambda names: measurement(core=50, mlp=40) if names else measurement(core=100))
    assert best == frozenset()


def test_pins_that_help_only_together_are_found_and_the_idle_ones_dropped():
    remedies = [remedy(f"pin:{name}") for name in "abcde"]
    needed = {"pin:b", "pin:d"}
    best, _ = run_search(remedies, lambda names: measurement(core=0 if needed <= names else 100))
    assert best == needed


@pytest.mark.parametrize("needed", list(combinations("abcd", 2)))
def test_the_set_that_is_found_has_no_idle_member(needed):
    """Each needed pin removes its own half; one more removes nothing."""
    remedies = [remedy(f"pin:{name}") for name in "abcd"]
    first, second = (f"pin:{name}" for name in needed)
    best, _ = run_search(
        remedies, lambda names: measurement(core=50 * (first not in names), mlp=50 * (second not in names))
    )
    assert best == {first, second}


def test_of_equals_the_one_with_the_shorter_modelled_step_is_taken():
    remedies = [remedy("slow", "attention"), remedy("fast", "attention")]
    best, _ = run_search(
        remedies, lambda names: measurement(core=0 if names else 9, step_ns=100.0 if "slow" in names else 90.0)
    )
    assert best == {"fast"}


def test_a_program_that_could_not_be_made_is_left_out():
    def result(names):
        return Measurement(error="crashed") if "a" in names else measurement(core=0 if "b" in names else 9)

    best, _ = run_search([remedy("a"), remedy("b")], result)
    assert best == {"b"}


def test_what_was_not_measured_for_want_of_compiles_is_not_taken():
    remedies = [remedy("a"), remedy("b")]
    best, _ = run_search(remedies, lambda names: measurement(core=9 - 4 * ("a" in names) - 5 * ("b" in names)), most=1)
    assert best == {"a"}


def test_changes_of_the_plan_are_no_part_of_it():
    best, requested = run_search([remedy("m", kind=PLAN)], lambda names: measurement(core=0 if names else 9))
    assert (best, requested) == (frozenset(), [])


def test_bytes_that_cannot_be_counted_are_no_improvement():
    assert is_better(measurement(core=1), measurement(core=2))
    assert not is_better(measurement(core=1, unknown_rows=1), measurement(core=2))
    assert not is_better(measurement(core=1, missing=1), measurement(core=2))


def test_what_removes_bytes_and_takes_longer_is_not_taken():
    """A wrong remedy: nothing is left of 100 bytes, and the step takes 130 ns in place of 100."""
    remedies = [remedy("wrong"), remedy("right")]
    times = {"wrong": 130.0, "right": 90.0}

    def leaves(names):
        step = max((times[name] for name in names), default=100.0)
        return measurement(core=0 if "wrong" in names else 60 if names else 100, step_ns=step)

    best, _ = run_search(remedies, leaves)
    assert best == {"right"}
    assert saves_bytes(leaves({"wrong"}), leaves(set()))
    assert not is_better(leaves({"wrong"}), leaves(set()))


def test_times_within_two_percent_are_alike_and_an_unknown_one_is_none_longer():
    base = measurement(core=9, step_ns=100.0)
    assert is_better(measurement(core=1, step_ns=102.0), base)
    assert not is_better(measurement(core=1, step_ns=102.1), base)
    assert is_better(measurement(core=1), base)
    assert is_faster(measurement(core=9, step_ns=98.0), base)
    assert not is_faster(measurement(core=9, step_ns=98.1), base)
    assert not is_faster(measurement(core=10, step_ns=50.0), base)
    assert not is_faster(measurement(core=9), base)


def test_changes_that_are_tried_for_their_time_are_no_part_of_the_search_for_bytes():
    best, requested = run_search([remedy("t", aim=TIME)], lambda names: measurement(core=0 if names else 9))
    assert (best, requested) == (frozenset(), [])
