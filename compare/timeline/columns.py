"""The columns of a timeline's events and steps, with their dtypes."""

EVENT_COLUMNS = {
    "device": "int32",
    "line": "category",
    "name": "category",
    "hlo_op": "category",
    "role": "category",
    "collective": "category",
    "scope": "category",
    "kind": "category",
    "axes": "category",
    "payload_bytes": "float64",
    "start_ns": "float64",
    "duration_ns": "float64",
    "wait_ns": "float64",
}
"""Columns that a reader or the model fills in.

device: logical id, or UNKNOWN.  line, name: as in the profile.  hlo_op: the instruction.  collective: the row of the
collectives table that it executes ("" for none).  scope, kind, axes: that row's ("" unless communication, "?" where
unknown); of compute and local copies scope is
that of the instruction, where the program is known.  payload_bytes: of this execution on
this device, NaN unknown.  start_ns: from the timeline's zero.  duration_ns: of an asynchronous communication, start to
done.  wait_ns: the part in which the device waits for others, NaN where the profile does not show it.
"""

WORK_COLUMNS = {
    "matrix_flops": "float64",
    "vector_ops": "float64",
    "memory_bytes": "float64",
    "ici_byte_hops": "float64",
    "dcn_bytes": "float64",
}
"""Columns of work, counted from the program (docs/metrics.md, section 14); timelines without a program lack them.

Each execution has its work on one event: an instruction on its compute event, an asynchronous local copy on the event
from its start to its done, a collective on its communication event; all others have 0.  NaN unknown.  Of a device that
stands for several, their mean.
"""

DETAIL_COLUMNS = {
    "category": "category",
    "flops": "float64",
    "accessed_bytes": "float64",
    "group_size": "float64",
    "core_energy_j": "float64",
    "program": "category",
    "moves": "category",
    "source": "category",
    "source_stack": "category",
    "path": "category",
}
"""Further columns of a measured timeline, in no table of a run folder.

category: XLA's `hlo_category`, "" unknown.  flops: `model_flops`; accessed_bytes: `bytes_accessed`, operands and
results together; group_size: devices of a collective's largest group; core_energy_j: of the core's power rail
(`vdd_energy_j`); NaN where not shown.  program: as the profile names it, like `jit_f(17)`.  moves: of a local copy from
which memory to which, like `host → HBM`.  source, source_stack, path: `file:line`, the frames that led to it, and the
framework's path (`tf_op`).  "" where not shown.
"""

DERIVED_COLUMNS = {"step": "int32", "hidden_ns": "float64", "exposed_ns": "float64", "alone_ns": "float64"}
"""Columns derived from those.

step: the step in which it starts, -1 outside all.  hidden_ns: of a communication, the part in which the same device
computes or waits for a local copy; exposed_ns: the rest.  alone_ns: the exposed part, divided evenly among
communications that are exposed at once, so that the sum is the exposed time of the device.  0 for events that are no
communication.
"""

STEP_COLUMNS = {"device": "int32", "step": "int32", "start_ns": "float64", "duration_ns": "float64"}
