"""The fastest algorithm of a collective alone: 1 byte a ns, 100 ns a hop."""

import pytest

from compare.network.engine.links import Links
from compare.network.machines.kinds import ALL_REDUCE, SWITCH
from compare.network.programs.best import list_candidates
from tests.compare.network.engine.toys import machine_of


@pytest.mark.parametrize(
    ("num_bytes", "expected"),
    [
        # 4 ranks on a switch, 200 ns a step.  Ring 6·200 + 1.5·S; direct 2·200 + 1.5·S; halving-doubling 4·200 + 1.5·S;
        # the trees 4·200 + 2·(S/2 + S).
        (80, {"ring": 1_320, "two-way-ring": 1_320, "direct": 520, "halving-doubling": 920}),
        (8_000, {"ring": 13_200, "two-way-ring": 13_200, "direct": 12_400, "halving-doubling": 12_800}),
    ],
)
def test_candidates_are_timed_as_in_closed_form(num_bytes, expected):
    machine = machine_of((SWITCH, 4))
    times = dict(list_candidates(machine, Links.of(machine), ALL_REDUCE, ((0, 1, 2, 3),), num_bytes))
    assert {word: times[word] for word in expected} == expected
    assert min(times, key=times.__getitem__) == "direct"
