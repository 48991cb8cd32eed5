"""XLA's flags for programs that tests run on virtual CPU devices."""

import os

QUICK = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
)
"""The programs run for milliseconds: XLA would optimize them for longer than that saves."""


def quick_environment() -> dict[str, str]:
    """The environment of a process whose CPU programs are compiled quickly; flags of the caller stay."""
    return os.environ | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".lstrip()}
