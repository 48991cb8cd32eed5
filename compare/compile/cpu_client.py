"""jaxlib's own CPU client, without a framework: programs loaded on virtual devices, and run there.

The steps are those of `jax._src.interpreters.pxla` (jax 0.10.2), on jaxlib's private API.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxlib import _jax, _profiler, xla_client
from numpy.typing import ArrayLike, DTypeLike

from compare.compile import compiler
from compare.compile.errors import RefusedError, WorkerError
from compare.compile.requests import AboutProgram, ArrayRow, OptionValue

Numbers = Callable[[str, tuple[int, ...]], ArrayLike]


@dataclass(frozen=True, slots=True)
class Aval:
    """The array type that jaxlib expects: shape, dtype, and whether the dtype is weak."""

    shape: tuple[int, ...]
    dtype: DTypeLike
    weak_type: bool = False


class CpuProgram:
    """A program on as many virtual CPU devices as it has partitions, with its arguments."""

    def __init__(self, bytecode: bytes, about: AboutProgram):
        """Compile with the options of its about.json.

        Raises `RefusedError` when the two do not fit, `WorkerError` when XLA gives up.
        """
        self._parameters, self._outputs = about["parameters"], about["outputs"]
        compile_options = about["compile_options"]
        client = xla_client.make_cpu_client(num_devices=_num_devices(compile_options))
        self._devices = list(client.devices())
        module, options = compiler.parse_stablehlo(bytecode), compiler.build_options(compile_options, self._devices)
        devices = xla_client.DeviceList(tuple(self._devices))
        try:
            self._executable = client.compile_and_load(module, devices, options)
        except _jax.JaxRuntimeError as error:
            raise WorkerError(f"XLA could not compile it for CPUs: {' '.join(str(error).split())[:500]}") from error
        (hlo,) = self._executable.hlo_modules()
        shape = xla_client.XlaComputation(hlo.as_serialized_hlo_module_proto()).program_shape()
        self._taken, result_shape = list(shape.parameter_shapes()), shape.result_shape()
        self._made = list(result_shape.tuple_shapes()) if result_shape.is_tuple() else [result_shape]
        if (len(self._taken), len(self._made)) != (len(self._parameters), len(self._outputs)):
            raise RefusedError(
                f"about.json does not fit the program: it has {len(self._taken)} parameters and {len(self._made)} "
                f"results; about.json lists {len(self._parameters)} and {len(self._outputs)}"
            )
        self._arguments: list[_jax.Array] = []

    @property
    def device_kind(self) -> str:
        return str(self._devices[0].device_kind)

    def load(self, numbers: Numbers) -> None:
        """Bring the arguments to the devices: too few numbers are repeated; every shard of an array holds the same."""
        shardings = self._shardings(self._executable.get_parameter_shardings(), self._parameters)
        self._arguments = [
            self._put(row, local, sharding, numbers)
            for row, local, sharding in zip(self._parameters, self._taken, shardings, strict=True)
        ]

    def step(self) -> None:
        """Run it once and wait; each result replaces the parameter of the same name."""
        results = self._executable.execute_sharded(self._arguments).consume_with_handlers(self._handlers())
        xla_client.batched_block_until_ready(results)
        places = {row["name"]: at for at, row in enumerate(self._parameters)}
        for row, array in zip(self._outputs, results, strict=True):
            if row["name"] in places:
                self._arguments[places[row["name"]]] = array

    def _put(
        self, row: ArrayRow, local: xla_client.Shape, sharding: xla_client.Sharding, numbers: Numbers
    ) -> _jax.Array:
        shape, dtype = tuple(local.dimensions()), local.numpy_dtype()
        shard = np.resize(np.asarray(numbers(row["name"], shape)).astype(dtype), shape)
        return xla_client.batched_device_put(
            Aval(tuple(row["shape"]), dtype), sharding, [shard] * len(self._devices), self._devices, enable_x64=False
        )

    def _handlers(self) -> list[_jax.ResultHandler]:
        shardings = self._shardings(self._executable.get_output_shardings(), self._outputs)
        return [
            xla_client.array_result_handler(Aval(tuple(row["shape"]), local.numpy_dtype()), sharding, True, True)
            for row, local, sharding in zip(self._outputs, self._made, shardings, strict=True)
        ]

    def _shardings(
        self, shardings: Sequence[xla_client.HloSharding] | None, rows: Sequence[ArrayRow]
    ) -> list[xla_client.GSPMDSharding]:
        """XLA names none for a program of one device."""
        devices = xla_client.DeviceList(tuple(self._devices))
        replicated = xla_client.HloSharding.replicate()
        return [xla_client.GSPMDSharding(devices, each) for each in shardings or [replicated] * len(rows)]


def _num_devices(options: Mapping[str, OptionValue]) -> int:
    counts: list[int] = []
    for name in ("num_replicas", "num_partitions"):
        count = options.get(name, 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise RefusedError(f"{name} is {count!r} in about.json; it is a whole number from 1")
        counts.append(count)
    return prod(counts)


class ProfileRecording:
    """XLA's profiler, on from here to `stop`."""

    def __init__(self) -> None:
        options = _profiler.ProfileOptions()
        options.python_tracer_level = 0
        self._session = _profiler.ProfilerSession(options)

    def stop(self) -> bytes:
        """The profile, an XSpace."""
        return bytes(self._session.stop())


def mark_step(name: str, *, number: int) -> _profiler.TraceMe:
    """A context that marks one step of the profile."""
    return _profiler.TraceMe(name, _r=1, step_num=number)
