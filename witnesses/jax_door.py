"""JAX as the tracer: of a Flax model as it is, and of a PyTorch model through torchax."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.source_info_util import register_exclusion
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jax_impl.process import about as jax_about
from jax_impl.process.start import configure
from meshes.case import Case
from meshes.process.packages import is_overwritten
from meshes.twins.worker import Stages
from witnesses.about import describe
from witnesses.witness import Argument, Program, Witness, WitnessError, load_values, resolve

DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32, "s32": jnp.int32}

FRAMES = 60
"""Of a traceback in the program: a model of PyTorch stands below many frames of torchax."""

Arrays = Mapping[str, Any]
Step = Callable[[Arrays, Arrays, Arrays], tuple[Any, Any, Arrays]]
"""Weights, cache and inputs by name -> ids [batch], logits [batch vocab], the new cache."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A step that JAX can trace, and the sharding constraints that the model requested in it."""

    program: Program
    run: Step
    constraints: list[str]


def lower(witness: Witness, case: Case, *, stages: Stages) -> tuple[bytes, dict[str, Any]]:
    """The program as StableHLO bytecode, and its about.json.  Raises `WitnessError` where constraints are lost."""
    _start(case)
    stages.begin("trace")
    mesh = make_mesh(witness, case)
    traced = trace(witness, case)
    groups = [
        {each.name: _abstract(each, case, witness, mesh) for each in traced.program.of_role(role)}
        for role in ("weight", "cache", "input")
    ]

    def step(weights: Arrays, cache: Arrays, inputs: Arrays) -> tuple[Any, Arrays]:
        ids, _, kept = traced.run(weights, cache, inputs)
        return ids, kept

    with as_tpu(mesh):
        lowered = jax.jit(step, donate_argnums=1, keep_unused=True).trace(*groups).lower(lowering_platforms=("tpu",))
    stages.begin("lower")
    constraints = check_constraints(lowered, requested=len(traced.constraints), witness=witness)
    parameters = [
        each
        for group, role in zip(groups, ("weight", "cache", "input"), strict=True)
        for each in sorted(traced.program.of_role(role), key=lambda each: each.name)
    ]
    return jax_about.bytecode(lowered), describe(
        witness,
        case,
        partitioner=jax_about.partitioner(),
        compile_options=jax_about.compile_options(lowered, num_devices=case.mesh.num_devices),
        parameters=parameters,
        constraints=constraints,
    )


def trace(witness: Witness, case: Case) -> Traced:
    """The step of a Flax model, or of a PyTorch model through torchax."""
    if witness.door == "torchax":
        return _trace_torch(witness, case)
    program = witness.program(case, enter=jax.named_scope)
    constraints: list[str] = []

    def run(weights: Arrays, cache: Arrays, inputs: Arrays) -> tuple[Any, Any, Arrays]:
        with counted_constraints(program, constraints):
            logits, kept = program.step({**weights, **cache, **inputs})
        return choose(logits), logits, kept

    return Traced(program, run, constraints)


def _trace_torch(witness: Witness, case: Case) -> Traced:
    import torch
    import torchax
    from torchax.interop import jax_view, torch_view

    if is_overwritten("torchax"):
        raise WitnessError("another package (torch_xla has a copy) was installed over torchax; see docs/witnesses.md")
    torch.set_grad_enabled(False)
    environment = torchax.default_env()
    if witness.override:
        resolve(witness.override)(environment)
    program = witness.program(case, enter=jax.named_scope)

    def run(weights: Arrays, cache: Arrays, inputs: Arrays) -> tuple[Any, Any, Arrays]:
        with environment:
            tensors = {name: torch_view(each) for name, each in {**weights, **cache, **inputs}.items()}
            logits, kept = program.step(tensors)
            full_logits, held = jax_view(logits), {name: jax_view(each) for name, each in kept.items()}
        return choose(full_logits), full_logits, held

    return Traced(program, run, [])


def choose(logits: Any) -> Any:
    """The greedy choice [batch], in the scope of the twins'."""
    with jax.named_scope("sample"):
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def make_mesh(witness: Witness, case: Case) -> Mesh:
    """The case's mesh of this process's devices in order of id, by the model's own names of the axes."""
    sizes = case.mesh.axes
    devices = np.array(jax.devices()[: case.mesh.num_devices]).reshape(*sizes.values())
    names = tuple(witness.axis_names.get(axis, axis) for axis in sizes)
    return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(names))


def sharding(each: Argument, case: Case, witness: Witness, mesh: Mesh) -> NamedSharding:
    """Of an argument, by the model's own names of the axes."""
    names = witness.axis_names
    axes = (
        tuple(names.get(axis, axis) for axis in axes) if isinstance(axes, tuple) else names.get(axes or "", axes)
        for axes in each.axes(case)
    )
    return NamedSharding(mesh, PartitionSpec(*axes))


@contextmanager
def as_tpu(mesh: Mesh) -> Iterator[None]:
    """What a model that looks for devices finds: the mesh, and TPUs.  Some ask for no sharding where there are none."""
    devices = jax.devices
    jax.devices = lambda *_: [SimpleNamespace(platform="tpu")] * mesh.size
    try:
        with mesh:
            yield
    finally:
        jax.devices = devices


@contextmanager
def counted_constraints(program: Program, names: list[str]) -> Iterator[None]:
    """Within this context, each call by which the model requests a sharding is recorded."""
    if program.constraint is None:
        yield
        return
    module, name = program.constraint
    plain = getattr(module, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        names.append(name)
        return plain(*args, **kwargs)

    setattr(module, name, counted)
    try:
        yield
    finally:
        setattr(module, name, plain)


def check_constraints(lowered: jax.stages.Lowered, *, requested: int, witness: Witness) -> int:
    """The number of sharding constraints in the program.  Raises `WitnessError` if the model requested another."""
    word = "sdy.sharding_constraint" if jax_about.partitioner() == "shardy" else "@Sharding"
    present = lowered.as_text().count(word)
    if present != requested:
        raise WitnessError(
            f"{witness.name} asks for {requested} shardings of activations, and {present} are in the program: it "
            f"would be judged for what it does not say"
        )
    return present


def _start(case: Case) -> None:
    """As many virtual CPU devices as the mesh has: programs are traced on those for TPUs, too."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", case.mesh.num_devices)
    configure(case)
    configure_locations()


def configure_locations() -> None:
    """Source lines reach below the frames of torch and torchax, which are nobody's model."""
    jax.config.update("jax_traceback_in_locations_limit", FRAMES)
    for package in ("torch", "torchax"):
        if spec := find_spec(package):
            register_exclusion(f"{Path(str(spec.origin)).parent}/")


def _abstract(each: Argument, case: Case, witness: Witness, mesh: Mesh) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(each.shape, DTYPES[each.dtype], sharding=sharding(each, case, witness, mesh))


class Session:
    """Both programs of a case and its weights on this machine's CPU devices, with the cache between them."""

    def __init__(self, witness: Witness, case: Case, read: Callable[[str], Any]) -> None:
        _start(case)
        self.witness, self.case, self.mesh = witness, case, make_mesh(witness, case)
        self.steps = {phase: trace(witness, case.at(phases=(phase,))) for phase in ("prefill", "decode")}
        self.programs = {phase: jax.jit(step.run, donate_argnums=1) for phase, step in self.steps.items()}
        program = self.steps["prefill"].program
        values = load_values(witness, program, read, case=case.at(phases=("prefill",)))
        self.weights = {each.name: self._put(values[each.name], each) for each in program.of_role("weight")}
        self.cache = {each.name: self._put(np.zeros(each.shape), each) for each in program.of_role("cache")}
        self.scores: Any = None
        """The last step's logits of each sequence, f32 [batch, vocab]."""

    def prefill(self, tokens: Any) -> Any:
        return self._run("prefill", {"tokens": tokens})

    def decode(self, tokens: Any, *, position: int) -> Any:
        return self._run("decode", {"tokens": tokens, "position": np.int32(position)})

    def _run(self, phase: str, inputs: Mapping[str, Any]) -> Any:
        program = self.steps[phase].program
        given = {each.name: self._put(inputs[each.name], each) for each in program.of_role("input")}
        with as_tpu(self.mesh):
            ids, logits, kept = self.programs[phase](self.weights, self.cache, given)
        self.cache = {each.name: self._put(kept[each.name], each) for each in program.of_role("cache")}
        self.scores = np.asarray(logits, dtype=np.float32)
        return np.asarray(ids)

    def _put(self, value: Any, each: Argument) -> Any:
        array = value if isinstance(value, jax.Array) else np.asarray(value).astype(DTYPES[each.dtype])
        return jax.device_put(array, sharding(each, self.case.at(phases=("prefill",)), self.witness, self.mesh))
