"""Traffic matrices: logical, and conserved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.render.errors import ViewError
from tests.compare.render.from_json import traffic
from tests.compare.render.reports import FORWARD, TP, row

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def test_a_collective_goes_evenly_to_the_other_members_of_its_group() -> None:
    matrices = traffic([row("a", "all-reduce", "tp", "embed", step_wire_bytes=300)], num_devices=8)
    # 300 bytes a device, to 3 others.
    assert matrices.total[0].tolist() == [0, 100, 100, 100, 0, 0, 0, 0]
    assert matrices.total[5].tolist() == [0, 0, 0, 0, 100, 0, 100, 100]


def test_a_permute_goes_to_its_pairs_and_what_stays_moves_nothing() -> None:
    pairs = [*FORWARD, [4, 4]]
    matrices = traffic([row("a", "collective-permute", "pp", "x", step_wire_bytes=50, groups=pairs)], num_devices=8)
    # 50 bytes a device are 400 in all, over four pairs.
    assert matrices.total[0, 4] == 100
    assert matrices.total.sum() == 400
    assert matrices.total[4].sum() == 0


def test_every_axis_has_its_own_matrix_and_they_add_up() -> None:
    rows = [
        row("a", "all-gather", "tp", "x", step_wire_bytes=7),
        row("b", "collective-permute", "pp", "x", step_wire_bytes=11, groups=FORWARD),
    ]
    matrices = traffic(rows, num_devices=8)
    assert list(matrices.panels) == ["tp", "pp", "total"]
    assert np.allclose(matrices.by_axes["tp"] + matrices.by_axes["pp"], matrices.total)


def test_the_program_of_one_slice_runs_in_every_slice() -> None:
    rows = [
        row("a", "all-gather", "tp", "x", step_wire_bytes=6, groups=[[0, 1], [2, 3]]),
        row("b", "all-reduce", "dp", "x", step_wire_bytes=5, network="dcn", groups=[[0, 4], [1, 5], [2, 6], [3, 7]]),
    ]
    matrices = traffic(rows, num_devices=8, slices=2)
    assert matrices.by_axes["tp"][6, 7] == matrices.by_axes["tp"][0, 1] == 6
    assert matrices.by_axes["dp"][2, 6] == 5


def test_unequal_groups_send_in_proportion_to_their_formula() -> None:
    matrices = traffic([row("a", "all-gather", "?", "x", step_wire_bytes=3, groups=[[0, 1, 2], [3]])], num_devices=4)
    assert matrices.total[3].sum() == matrices.total[:, 3].sum() == 0
    assert matrices.total.sum() == 12


def test_rows_of_unknown_executions_are_counted_not_drawn() -> None:
    matrices = traffic([row("a", "all-gather", "tp", "x", executions=None, step_wire_bytes=None)], num_devices=8)
    assert (matrices.unknown_rows, matrices.total.sum()) == (1, 0)


def test_a_device_beyond_the_mesh_is_refused() -> None:
    with pytest.raises(ViewError, match="beyond the 4 of the mesh"):
        traffic([row("a", "all-gather", "tp", "x", groups=TP)], num_devices=4)


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from((2, 4, 8)), st.integers(0, 10**12)), max_size=6))
def test_bytes_are_conserved(drawn_rows: list[tuple[str, int, int]]) -> None:
    def groups(kind: str, size: int) -> list[list[int]]:
        if kind == "collective-permute":
            return [[at, (at + size) % 8] for at in range(8)]
        return [list(range(at, at + size)) for at in range(0, 8, size)]

    rows = [
        row(f"r{at}", kind, f"axis{size}", "x", step_wire_bytes=count, groups=groups(kind, size))
        for at, (kind, size, count) in enumerate(drawn_rows)
        if not (kind == "collective-permute" and size == 8)
    ]
    total = sum(row["step_wire_bytes"] for row in rows)
    assert traffic(rows, num_devices=8).total.sum() / 8 == pytest.approx(total)
