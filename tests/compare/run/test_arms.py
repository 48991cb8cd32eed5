"""The table of arms."""

import pytest

from compare.run.arms import ARMS, Lowering, find_arm, parse_arms, parse_controls, parse_witnesses
from compare.run.choices import CONTROLS
from compare.run.errors import WorkError
from meshes.case import Case


def names(arm_name, case, **options):
    return [cell.name for cell in find_arm(arm_name).cells(case, **options)]


def test_each_arm_has_the_cells_that_the_design_names():
    case = Case.read("tp4pp2")
    cells = {name: [cell.name for cell in row.cells(case)] for name, row in ARMS.items()}
    assert cells == {"jax": ["tpu", "tpu+gspmd"], "torchxla": ["tpu", "tpu+shardy", "tpu+einsum"]}


def test_a_case_that_asks_for_einsum_has_no_cell_for_it():
    assert names("torchxla", Case.read("tp4pp2", attention="einsum")) == ["tpu", "tpu+shardy"]


def test_controls_are_asked_for_by_what_they_change():
    case = Case.read("tp4pp2")
    assert names("jax", case, controls=()) == ["tpu"]
    assert names("jax", case, controls=("style", "loop")) == [
        "tpu",
        "tpu+weights",
        "tpu+explicit",
        "tpu+typed",
        "tpu+unrolled",
    ]
    assert names("torchxla", case.at(loop="unrolled"), controls=("attention", "loop")) == [
        "tpu",
        "tpu+einsum",
        "tpu+scan",
    ]
    # Types bear shardings in JAX alone.
    assert names("torchxla", case, controls=("style",)) == ["tpu", "tpu+weights", "tpu+explicit"]
    by_hand = case.at(style="explicit")
    assert names("jax", by_hand, controls=("style",)) == ["tpu", "tpu+pinned", "tpu+weights", "tpu+typed"]
    assert names("jax", case, controls=("libtpu",), libtpu="0.0.40") == ["tpu", "tpu+libtpu-0.0.40"]
    assert names("jax", case, controls=("libtpu",)) == ["tpu", "tpu+libtpu-0.0.41"]


def test_the_control_of_the_cache_has_every_other_way_to_write_and_read_it() -> None:
    """A scan selects to read and updates a slice to write, split positions are selected; unrolled layers read what
    they wrote."""
    all_ways = [
        "tpu+cache-select",
        "tpu+cache-slice",
        "tpu+cache-index",
        "tpu+cache-written",
        "tpu+cache-written-index",
    ]
    for arm in ARMS:
        case = Case.read("tp8", phases=("decode",))
        assert names(arm, case, controls=("cache",)) == ["tpu", *all_ways]
        unrolled = [name for name in all_ways if name != "tpu+cache-written"]
        assert names(arm, case.at(loop="unrolled"), controls=("cache",)) == ["tpu", *unrolled]
        split = Case.read("cp2tp4", phases=("decode",))
        assert names(arm, split, controls=("cache",)) == ["tpu", *all_ways[1:]]
        assert names(arm, case.at(phases=("prefill",)), controls=("cache",)) == ["tpu"]
    assert names("jax", case.at(style="explicit"), controls=("cache",)) == ["tpu"]


def test_a_control_changes_one_thing():
    case = Case.read("tp4pp2")
    for row in ARMS.values():
        for cell in row.cells(case, controls=CONTROLS)[1:]:
            assert len(cell.changes) + bool(cell.libtpu) + bool(cell.lowering) == 1, cell
            word = (*cell.changes, "tracer" if cell.lowering else "libtpu")[0]
            assert cell.control == {"variants": "cache"}.get(word, word)


def test_controls_are_read_from_words():
    assert parse_controls("none") == ()
    assert parse_controls("all") == CONTROLS
    assert parse_controls("style, partitioner") == ("partitioner", "style")
    with pytest.raises(
        WorkError, match="unknown control 'speed'; choose from partitioner, attention, cache, style, loop, tr"
    ):
        parse_controls("style,speed")


def test_one_lowering_serves_both_partitioners_where_the_arm_does_not_heed_them():
    case = Case.read("tp4pp2", phases=("decode",), partitioner="shardy")
    assert find_arm("torchxla").worker_case(case).partitioner == "native"
    assert find_arm("jax").worker_case(case) == case


def test_an_unknown_arm_is_refused_with_those_that_are_known():
    with pytest.raises(WorkError, match="unknown framework 'tf'; choose from jax, torchxla"):
        find_arm("tf")
    with pytest.raises(WorkError, match="no framework was named; choose from jax, torchxla"):
        parse_arms("")


def test_witnesses_are_read_from_words_and_stand_beside_their_arm():
    assert parse_witnesses("", arms=["jax"]) == ()
    assert parse_witnesses("tunix, tunix+norm,tunix", arms=["jax"]) == ("tunix", "tunix+norm")
    with pytest.raises(WorkError, match="unknown reference model 'vllm'; choose from hf-torchxla, hf-torchax, "):
        parse_witnesses("vllm", arms=["jax"])
    with pytest.raises(WorkError, match="the reference model tunix is of jax, which --framework leaves out"):
        parse_witnesses("tunix", arms=["torchxla"])


def test_a_witness_is_a_cell_of_its_arm_that_another_worker_lowers():
    case = Case.read("dp2tp4", phases=("decode",))
    witnesses = ("hf-torchxla", "tunix")
    cells = {arm: find_arm(arm).cells(case, controls=(), witnesses=witnesses) for arm in ARMS}
    assert {arm: [cell.name for cell in arm_cells] for arm, arm_cells in cells.items()} == {
        "jax": ["tpu", "tunix"],
        "torchxla": ["tpu", "hf-torchxla"],
    }
    lowering = cells["jax"][1].lowering
    assert lowering is not None
    assert (lowering.module, lowering.arguments) == ("witnesses.lower", ("tunix",))


def test_what_a_lowering_lacks_is_said_with_the_command_that_gets_it():
    lowering = Lowering(module="witnesses.lower", packages=("no-such-thing",), install_hint="pip install this")
    assert lowering.missing() == "no-such-thing not installed; get it with pip install this"
