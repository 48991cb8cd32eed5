"""Collectives as a user's messages, worked by hand: 1 byte a ns, 100 ns a hop."""

import pytest

from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.machines.changes import machine_table
from compare.network.machines.collective import Collective
from compare.network.machines.custom import list_levels, parse_custom, read_custom
from compare.network.machines.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    CUSTOM,
    CUT_THROUGH,
    FULLY_CONNECTED,
    REDUCE_SCATTER,
    RING,
    SWITCH,
)
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.network.machines.machine_file import parse_machine
from compare.network.native.times import time_collective
from compare.timeline.errors import TimingError
from tests.compare.network.engine.toys import Program

TREE = {
    "collective": "all-reduce",
    "ranks": 4,
    "parts": 1,
    "sends": [[1, 0, 0, "reduce"], [3, 2, 0, "reduce"], [2, 0, 0, "reduce"], [0, 2, 0], [0, 1, 0], [2, 3, 0]],
}


def write(kind, parts, sends, *, ranks=4):
    return {"collective": kind, "ranks": ranks, "parts": parts, "sends": sends}


def list_ring(kind):
    """The ring of 4: in step s of the scatter rank r sends part r - s - 1 on, in that of the gather part r - s."""
    scatter = [[r, (r + 1) % 4, (r - s - 1) % 4, "reduce"] for s in range(3) for r in range(4)]
    gather = [[r, (r + 1) % 4, (r - s) % 4] for s in range(3) for r in range(4)]
    return write(kind, 4, {ALL_REDUCE: scatter + gather, REDUCE_SCATTER: scatter, ALL_GATHER: gather}[kind])


def machine_of(table, kind=SWITCH, **rest):
    algorithm = Algorithm(CUSTOM, custom=parse_custom(table, name="mine"))
    dim = Dim(kind=kind, size=4, bytes_per_ns=1.0, latency_ns=100.0)
    return Machine(dims=(dim,), algorithms=Algorithms.alike((algorithm,)), **rest)


def time_alone(machine, kind, num_bytes=600):
    return time_collective(machine, Collective(kind=kind, num_bytes=num_bytes))


def simulate_alone(machine, kind, num_bytes=600):
    program = Program(4)
    program.collective(kind, num_bytes, tuple(range(4)))
    return simulate_graph(Plan.of(program.graph(), machine), machine).total_ns


def test_a_tree_of_four_ranks_on_a_switch():
    """Up: 800 to ranks 0 and 2, 800 to rank 0.  Down: rank 0's link up carries two messages, 1,400; then 800.  With a
    reduction of 3 × 600 bytes at 6 bytes a ns, 300 more for each of two steps."""
    assert time_alone(machine_of(TREE), ALL_REDUCE) == 800 + 800 + 1_400 + 800
    assert simulate_alone(machine_of(TREE), ALL_REDUCE) == 3_800
    assert time_alone(machine_of(TREE, memory_bytes_per_ns=6.0), ALL_REDUCE) == 3_800 + 2 * 300


def test_in_queues_a_message_goes_on_as_soon_as_its_own_part_has_come():
    """Message by message, rank 0's first message down is at rank 2 after 800, and rank 2 sends on at once."""
    first = write(ALL_REDUCE, 1, [*TREE["sends"][:3], [0, 2, 0], [0, 1, 0], [2, 3, 0]])
    second = write(ALL_REDUCE, 1, [*TREE["sends"][:3], [0, 1, 0], [0, 2, 0], [2, 3, 0]])
    assert simulate_alone(machine_of(first, links=CUT_THROUGH), ALL_REDUCE) == 1_600 + 800 + 800
    assert simulate_alone(machine_of(second, links=CUT_THROUGH), ALL_REDUCE) == 1_600 + 1_400 + 800


@pytest.mark.parametrize("kind", [ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER])
@pytest.mark.parametrize("dim", [RING, SWITCH, FULLY_CONNECTED])
def test_a_ring_written_by_hand_takes_what_the_ring_takes(kind, dim):
    written = machine_of(list_ring(kind), dim, memory_bytes_per_ns=6.0)
    ring = Machine(dims=written.dims, algorithms=Algorithms.alike((Algorithm(RING),)), memory_bytes_per_ns=6.0)
    assert time_alone(written, kind) == pytest.approx(time_alone(ring, kind))
    assert simulate_alone(written, kind) == pytest.approx(time_alone(ring, kind))


def test_an_all_to_all_on_a_full_mesh_is_one_step():
    """Rank r's part for rank t is 4r + t: a quarter of its bytes."""
    table = write(ALL_TO_ALL, 16, [[r, t, 4 * r + t] for r in range(4) for t in range(4) if r != t])
    assert time_alone(machine_of(table, FULLY_CONNECTED), ALL_TO_ALL) == 100 + 150


def test_a_part_that_is_sent_before_it_is_overwritten_leaves_no_later_than_that():
    """The second message takes rank 0's part away from it: not before the first one has it."""
    table = write(ALL_REDUCE, 1, [[0, 1, 0, "reduce"], [1, 0, 0]], ranks=2)
    levels = list_levels(parse_custom(table, name="two"), ALL_REDUCE, 2)
    assert [[send.source for send in level] for level in levels] == [[0], [1]]


def test_a_machine_file_has_its_algorithms_and_gives_them_again():
    table = {
        "dims": [{"kind": "switch", "size": 4, "bandwidth": 1, "latency": 100}],
        "algorithms": {"all-reduce": ["custom:tree"]},
        "custom": {"tree": TREE},
    }
    machine = parse_machine(table, name="m")
    assert time_alone(machine, ALL_REDUCE) == 3_800
    assert parse_machine(machine_table(machine), name="m") == machine


def test_a_file_that_is_none_names_itself(tmp_path):
    path = tmp_path / "tree.toml"
    path.write_text('collective = "all-reduce"\nranks = 2\nparts = 1\nsends = [[0, 1, 0, "reduce"]]\n')
    with pytest.raises(TimingError) as caught:
        read_custom(path)
    assert str(caught.value) == (f"{path}: sends: this is no all-reduce: rank 0 ends without rank 1's part 0")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (TREE | {"sends": TREE["sends"][:-1]}, "rank 3 ends without rank 0's part 0"),
        (
            TREE | {"sends": [[1, 0, 0, "reduce"]] * 2},
            "sends.1, rank 1 to 0: adds what rank 1 has in part 0 a second time",
        ),
        (TREE | {"sends": [[0, 4, 0]]}, "sends.0: rank 4 is not among 4 ranks"),
        (TREE | {"sends": [[0, 1, 1]]}, "sends.0: part 1 is not among 1 parts"),
        (TREE | {"sends": [[2, 2, 0]]}, "sends.0: rank 2 sends to itself"),
        (TREE | {"sends": [[0, 1, 0, "add"]]}, 'sends.0: [from, to, part] or [from, to, part, "reduce"], not'),
        (TREE | {"sends": []}, "sends: a list of 1 to 100,000 messages"),
        (TREE | {"ranks": 0}, "ranks: a whole number from 1, not 0"),
        (TREE | {"collective": "gossip"}, "collective: unknown 'gossip'; known are all-reduce"),
        (TREE | {"steps": 3}, "steps: unknown key; known are collective"),
        (write(ALL_GATHER, 6, [[0, 1, 0]]), "parts: a positive multiple of 4 for an all-gather of 4 ranks, not 6"),
        (write(ALL_GATHER, 4, [[0, 1, 2]]), "sends.0, rank 0 to 1: rank 0 does not have part 2 yet"),
        (write(ALL_GATHER, 4, [[0, 1, 0, "reduce"]]), "sends.0, rank 0 to 1: an all-gather reduces nothing"),
        (write(ALL_TO_ALL, 16, [[0, 1, 1]]), "this is no all-to-all: rank 0 ends without rank 1's part 4"),
    ],
)
def test_messages_that_do_not_make_the_collective_are_refused(table, why):
    with pytest.raises(TimingError) as caught:
        parse_custom(table, name="mine")
    assert why in str(caught.value)


def test_it_serves_its_own_collective_and_number_of_ranks():
    with pytest.raises(TimingError, match="custom:mine makes an all-reduce of 4 ranks, no all-gather of 4"):
        time_alone(machine_of(TREE), ALL_GATHER)
