"""Laws of the JAX twin: its whole steps, compiled, have the collectives of the table and no others."""

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from tests.laws.law import GSPMD, SHARDY, Program, Setting
from tests.laws.programs import Found, Job, Words, without_shift
from tests.laws.table import parameters, setting_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (find_spec("jax") and find_spec("libtpu")), reason="JAX or libtpu is not installed"),
]


@pytest.mark.parametrize(("setting", "phase", "program"), parameters("jax_impl"))
def test_a_step_has_exactly_these_collectives(
    setting: Setting, phase: str, program: Program, counts_of: Callable[[Job], Found]
) -> None:
    assert counts_of(Job.of(setting, phase, program)) == setting.expected(phase, program)


@pytest.mark.parametrize("words", [(("attention", "einsum"),)], ids=["einsum"])
@pytest.mark.parametrize("program", [SHARDY, GSPMD], ids=["Shardy", "GSPMD"])
@pytest.mark.parametrize("phase", ["decode"])
@pytest.mark.parametrize("setting", [setting_of("tp4pp2"), setting_of("cp4tp2")], ids=["tp4pp2", "cp4tp2"])
def test_attention_that_is_written_out_has_the_same(
    setting: Setting, phase: str, program: Program, words: Words, counts_of: Callable[[Job], Found]
) -> None:
    """JAX's own call is such an einsum."""
    assert counts_of(Job.of(setting, phase, program, words)) == setting.expected(phase, program)


@pytest.mark.parametrize("words", [(("loop", "unrolled"),)], ids=["unrolled"])
@pytest.mark.parametrize("program", [SHARDY], ids=["Shardy"])
@pytest.mark.parametrize("phase", ["decode"])
@pytest.mark.parametrize("setting", [setting_of("tp4pp2"), setting_of("pp2ep4")], ids=["tp4pp2", "pp2ep4"])
def test_unrolled_it_has_the_same_but_the_shift_of_nothing(
    setting: Setting, phase: str, program: Program, words: Words, counts_of: Callable[[Job], Found]
) -> None:
    """The first tick's shift moves zeros, which the compiler may see."""
    shifts, others = without_shift(counts_of(Job.of(setting, phase, program, words)))
    expected_shifts, expected = without_shift(setting.expected(phase, program))
    assert others == expected
    assert shifts in (expected_shifts, expected_shifts - 1)
