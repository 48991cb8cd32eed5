"""The table of arms."""

import pytest

from compare.work.arms import ARMS, arm
from compare.work.error import WorkError
from meshes.case import Case


def test_each_arm_has_the_cells_that_the_design_names():
    case = Case.read("tp4pp2")
    cells = {name: [cell.name for cell in row.cells(case)] for name, row in ARMS.items()}
    assert cells == {"jax": ["tpu", "tpu+gspmd"], "torchxla": ["tpu", "tpu+einsum"]}


def test_a_case_that_asks_for_einsum_has_no_cell_for_it():
    case = Case.read("tp4pp2", attention="einsum")
    assert [cell.name for cell in arm("torchxla").cells(case)] == ["tpu"]


def test_an_unknown_arm_is_refused_with_those_that_are_known():
    with pytest.raises(WorkError, match="unknown arm 'tf'; choose from jax, torchxla"):
        arm("tf")
