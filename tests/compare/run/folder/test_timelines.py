"""Which measured programs of two arms are held against each other."""

from compare.run.folder.timelines import measured_alike

JAX = {"profiles": {"cpu": {}, "tpu+run": {}}}
TORCH = {"profiles": {"cpu": {}, "cpu+jaxlib": {}, "tpu+run": {}}}


def test_programs_measured_on_their_own_runtimes_are_a_pair():
    assert measured_alike({"jax": JAX, "torchxla": TORCH}, "cpu") == {"jax": "cpu", "torchxla": "cpu"}
    assert measured_alike({"jax": JAX, "torchxla": TORCH}, "tpu+run") == {"jax": "tpu+run", "torchxla": "tpu+run"}


def test_what_ran_on_jax_s_runtime_is_held_against_what_always_does():
    assert measured_alike({"jax": JAX, "torchxla": TORCH}, "cpu+jaxlib") == {"jax": "cpu", "torchxla": "cpu+jaxlib"}


def test_what_was_measured_is_never_held_against_what_was_not():
    compiled = {"profiles": {}, "cell": "tpu"}
    assert measured_alike({"jax": compiled, "torchxla": TORCH}, "tpu+run") == {"torchxla": "tpu+run"}
