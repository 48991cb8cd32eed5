"""libtpu's compiler without a TPU and without a framework, on jaxlib's private API.

The steps are those of `jax.experimental.topologies.get_topology_desc` and `jax._src.compiler`
(jax 0.10.2); a test holds the HLO against what `lowered.compile()` of JAX itself gives.
"""

from collections.abc import Mapping, Sequence

import libtpu
import numpy as np
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

from compare.compile.errors import CompileError, RefusedError
from compare.compile.requests import OptionValue

HOST_BOUNDS = (2, 2, 1)
"""Chips of one host, as libtpu assumes; it refuses a side of 1 unless other bounds are passed."""

OPTIONS = frozenset({"num_replicas", "num_partitions", "parameter_is_tupled_arguments", "profile_version"})
BUILD_OPTIONS = frozenset(
    {
        "use_spmd_partitioning",
        "use_shardy_partitioner",
        "allow_spmd_sharding_propagation_to_parameters",
        "allow_spmd_sharding_propagation_to_output",
        "optimization_level",
        "memory_fitting_level",
        "exec_time_optimization_effort",
        "memory_fitting_effort",
    }
)


def start() -> None:
    """Load libtpu as a plugin; needs `JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1` and the like in the environment."""
    if not xla_client.pjrt_plugin_loaded("tpu"):
        xla_client.load_pjrt_plugin_dynamically("tpu", libtpu.get_library_path())
    if not xla_client.pjrt_plugin_initialized("tpu"):
        xla_client.initialize_pjrt_plugin("tpu")


def list_devices(topology: str, *, num_slices: int = 1) -> list[_jax.Device]:
    """The compile-only devices of `num_slices` slices, each like `v5e:2x4`."""
    sides = [int(side) for side in topology.partition(":")[2].split("x") if side.isdigit()]
    bounds = [min(side, bound) for side, bound in zip([*sides, 1, 1, 1], HOST_BOUNDS, strict=False)]
    bounds_and_slices: dict[str, int | list[int]] = (
        {"chips_per_host_bounds": bounds} if tuple(bounds) != HOST_BOUNDS else {}
    )
    if num_slices > 1:
        bounds_and_slices["num_slices"] = num_slices
    try:
        description = xla_client.make_tfrt_tpu_c_api_device_topology(topology, **bounds_and_slices)
        return list(description._make_compile_only_devices())
    except _jax.JaxRuntimeError as error:
        raise RefusedError(f"libtpu knows no topology {topology!r}: {_first_line(error)}") from error


def position_of(device: _jax.Device) -> tuple[int, ...]:
    """Slice, x, y, z, core of a device; the devices of a single slice carry no slice."""
    return (getattr(device, "slice_index", None) or 0, *device.coords, device.core_on_chip)


def order_devices(devices: Sequence[_jax.Device], places: Sequence[Sequence[int]]) -> list[_jax.Device]:
    """The devices in the order of `places`: logical device i sits at `places[i]`."""
    at = {position_of(device): device for device in devices}
    wanted = [tuple(row) for row in places]
    if missing := [row for row in wanted if row not in at]:
        raise RefusedError(f"the topology has no device at slice, x, y, z, core = {list(missing[0])}")
    if len(set(wanted)) != len(wanted):
        raise RefusedError("two logical devices have one place")
    if len(wanted) != len(at):
        raise RefusedError(f"{len(wanted)} places for the {len(at)} devices of the topology; each needs one")
    return [at[row] for row in wanted]


def positions_of_ids(ordered: Sequence[_jax.Device], ids: Sequence[int]) -> list[tuple[int, ...]]:
    """The places of a compiled module's device ids; with several slices it is one slice's module, with ids in it."""
    slice_devices = [device for device in ordered if position_of(device)[0] == position_of(ordered[0])[0]]
    by_id = sorted(slice_devices, key=lambda device: device.id)
    return [position_of(by_id[number]) for number in ids]


def build_options(named: Mapping[str, OptionValue], ordered: Sequence[_jax.Device]) -> _jax.CompileOptions:
    """The compile options that a request names, over these devices; a name that is not known is refused.

    `flags` are XLA's own by name, like `{"xla_tpu_...": "true"}`.
    """
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    if unknown := set(named) - OPTIONS - BUILD_OPTIONS - {"flags"}:
        known = ", ".join(sorted(OPTIONS | BUILD_OPTIONS | {"flags"}))
        raise RefusedError(f"unknown compile option {sorted(unknown)[0]!r}; known are {known}")
    for name, value in named.items():
        if name == "flags":
            if not isinstance(value, Mapping):
                raise RefusedError(f"the compile option flags is {value!r}; it is XLA's own flags, value by name")
            options.env_option_overrides = [(flag, str(setting)) for flag, setting in value.items()]
        else:
            setattr(options if name in OPTIONS else build, name, value)
    if options.num_replicas * options.num_partitions != len(ordered):
        raise RefusedError(
            f"num_replicas {options.num_replicas} x num_partitions {options.num_partitions} is not {len(ordered)}, "
            "the places"
        )
    ids = np.array([device.id for device in ordered]).reshape(options.num_replicas, options.num_partitions)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    return options


def parse_stablehlo(program: bytes) -> ir.Module:
    """Parse StableHLO, as bytecode or text, with the dialects that the frameworks write."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, sdy, chlo):
        dialect.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    try:
        return ir.Module.parse(program, context)
    except ir.MLIRError as error:
        raise RefusedError(f"the program is not StableHLO: {_first_line(error)}") from error


def compile_module(
    program: ir.Module, *, ordered: Sequence[_jax.Device], options: _jax.CompileOptions
) -> _jax.Executable:
    """The executable.  libtpu may also abort the process on bad input: the parent reports that."""
    client = ordered[0].client
    try:
        return client.compile(
            program, executable_devices=xla_client.DeviceList(tuple(ordered)), compile_options=options
        )
    except _jax.JaxRuntimeError as error:
        raise CompileError(str(error)) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error:")), lines[0] if lines else "no reason given")
