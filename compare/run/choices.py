"""What a run can be asked for, in words: apart from what does it, so that `--help` loads none of that."""

JAX, TORCHXLA = "jax", "torchxla"
FRAMEWORKS = (JAX, TORCHXLA)

CONTROLS = ("partitioner", "attention", "cache", "style", "loop", "tracer", "libtpu")
"""What a control changes: one thing at a time; what the change removes, it caused.  As --help lists them; the order
in which they own bytes is that of `CHANGES`."""
DEFAULT_CONTROLS = ("partitioner", "attention")

EARLIER_LIBTPU = "0.0.41"
"""The version of the control `libtpu`: an earlier release than the pinned one, which accepts the same programs."""

PLATFORMS = ("cpu", "tpu")
"""Platforms for execution: this machine's CPU as several devices, or its TPUs."""

TIMEOUT_S = 1800.0
"""Of each step of a cell, unless it is told otherwise."""
