"""JAX on eight CPU devices, in the process of the tests."""

import os
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") and find_spec("flax") else ["test_*.py"]

# Before JAX is imported: no accelerator, and as many devices as the meshes of these tests.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
