"""JAX on eight CPU devices, in the process of the tests."""

import os
from importlib.util import find_spec
from unittest.mock import patch

import pytest

from tests.xla_flags import quick_environment

collect_ignore_glob = [] if find_spec("jax") and find_spec("flax") else ["test_*.py"]

if not collect_ignore_glob:
    import jax

    # No accelerator, and as many devices as the meshes of these tests: of this process only.  What other tests keep has
    # the environment in its key.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)


@pytest.fixture(autouse=True, scope="package")
def quick_compiles():
    """XLA reads its flags once in a process, at the first device; programs that tests start do not inherit them."""
    with patch.dict(os.environ, quick_environment()):
        jax.devices()
