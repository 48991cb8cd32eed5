"""Which measured programs of two arms are held against each other."""

from compare.report.model.program import ArmPrograms
from compare.run.folder.timelines import match_measured
from tests.compare.report.records import program


def arm(*cells):
    """An arm whose programs of these cells were run."""
    return ArmPrograms(default=program(), profiles={cell: program(cell=cell) for cell in cells})


JAX, TORCH = arm("cpu", "tpu+run"), arm("cpu", "cpu+jaxlib", "tpu+run")


def test_programs_measured_on_their_own_runtimes_are_a_pair():
    assert match_measured({"jax": JAX, "torchxla": TORCH}, "cpu") == {"jax": "cpu", "torchxla": "cpu"}
    assert match_measured({"jax": JAX, "torchxla": TORCH}, "tpu+run") == {"jax": "tpu+run", "torchxla": "tpu+run"}


def test_what_ran_on_jax_s_runtime_is_held_against_what_always_does():
    assert match_measured({"jax": JAX, "torchxla": TORCH}, "cpu+jaxlib") == {"jax": "cpu", "torchxla": "cpu+jaxlib"}


def test_what_was_measured_is_never_held_against_what_was_not():
    assert match_measured({"jax": arm(), "torchxla": TORCH}, "tpu+run") == {"torchxla": "tpu+run"}
