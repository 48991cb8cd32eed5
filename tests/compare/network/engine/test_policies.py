"""One transfer of a rank at a time, and three that wait: each policy its own order, worked by hand.

4 ranks on a ring, 1 byte a ns, 100 ns a hop: all-reduces of 2,400, 1,200 and 600 bytes take 4,200, 2,400 and 1,500 ns.
"""

import pytest

from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.machines.kinds import ALL_REDUCE, RING
from tests.compare.network.engine.toys import Program, machine_of

ENDS = {
    "fifo": (4_200, 4_200 + 2_400, 4_200 + 2_400 + 1_500),
    # What came last goes first; the first of all had the links to itself.
    "lifo": (4_200, 4_200 + 1_500 + 2_400, 4_200 + 1_500),
    # The second has the higher priority.
    "priority": (4_200, 4_200 + 2_400, 4_200 + 2_400 + 1_500),
}


def three(priorities):
    program = Program(4)
    for num_bytes, priority in zip((2_400, 1_200, 600), priorities, strict=True):
        program.collective(ALL_REDUCE, num_bytes, (0, 1, 2, 3), after=[], priority=priority)
    return program.graph()


@pytest.mark.parametrize("policy", ENDS)
def test_each_policy_has_its_own_order(policy):
    machine = machine_of((RING, 4), policy=policy, in_flight=1)
    simulated = simulate_graph(Plan.of(three((0, 5, 1)), machine), machine)
    assert tuple(simulated.ends[0].tolist()) == ENDS[policy]


def test_priority_goes_before_arrival():
    machine = machine_of((RING, 4), policy="priority", in_flight=1)
    simulated = simulate_graph(Plan.of(three((0, 1, 5)), machine), machine)
    assert tuple(simulated.ends[0].tolist()) == (4_200, 4_200 + 1_500 + 2_400, 4_200 + 1_500)


def test_two_in_flight_share_the_links():
    """The first two share: 600 + 2·1,800 = 4,200 for the second; the first has 1,800 left, which from then the third
    delays: latency 600 alone, then 1,200 left against 900, at half speed."""
    machine = machine_of((RING, 4), policy="fifo", in_flight=2)
    simulated = simulate_graph(Plan.of(three((0, 0, 0)), machine), machine)
    assert tuple(simulated.ends[0].tolist()) == (4_800 + 1_800 + 300, 4_200, 4_800 + 1_800)
