"""PyTorch/XLA as the tracer, with weights, caches and inputs split, and nothing else."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.twins.worker import Stages
from torchxla_impl.process.start import start
from witnesses.about import describe
from witnesses.witness import Argument, Program, Witness, load_values


def lower(witness: Witness, case: Case, *, stages: Stages) -> tuple[bytes, dict[str, Any]]:
    """The program as StableHLO bytecode, and its about.json."""
    start(num_devices=case.mesh.num_devices)
    import torch
    import torch_xla.debug.profiler as xp

    from torchxla_impl.process import about as torchxla_about
    from torchxla_impl.process import stablehlo
    from torchxla_impl.sharding.create import layout_on_devices
    from torchxla_impl.sharding.lowering import format_sharding, placeholder

    stages.begin("trace")
    dtypes = _dtypes(torch)
    program = witness.program(case, enter=xp.Trace)
    given = {each.name: placeholder(each.shape, dtypes[each.dtype]) for each in program.arguments}
    # A cache that is written in place is another tensor afterwards, and no longer the parameter.
    caches = {each.name: given[each.name].clone() for each in program.of_role("cache")}
    ids, _, kept = _run(program, given | caches)
    stages.begin("lower")
    outputs = [ids, *kept.values()]
    graph = torchxla_about.lower_graph(outputs)
    numbers = {each.name: graph.tensor_parameter_id(given[each.name]) for each in program.arguments}
    parameters = sorted(
        (each for each in program.arguments if numbers[each.name] >= 0), key=lambda each: numbers[each.name]
    )
    layout = layout_on_devices(case)
    text = stablehlo.bytecode(
        graph,
        bodies=[],
        names=[each.name for each in parameters],
        shardings=[format_sharding(layout, each.split_dims) for each in parameters],
        overwritten={name: index for index, name in enumerate(kept, start=1)},
    )
    return text, describe(
        witness,
        case,
        partitioner="gspmd",
        compile_options=torchxla_about.compile_options(num_devices=case.mesh.num_devices),
        parameters=parameters,
        constraints=0,
    )


def _run(program: Program, tensors: Mapping[str, Any]) -> tuple[Any, Any, Mapping[str, Any]]:
    """ids [batch], logits [batch vocab], the new cache by name."""
    import torch
    import torch_xla.debug.profiler as xp

    logits, kept = program.step(tensors)
    with xp.Trace("sample"):
        return torch.argmax(logits, dim=-1).int(), logits, kept


def _dtypes(torch: Any) -> dict[str, Any]:
    return {"bf16": torch.bfloat16, "f32": torch.float32, "s32": torch.int32}


class Session:
    """Both programs of a case and its weights on virtual CPU devices, with the cache between them."""

    def __init__(self, witness: Witness, case: Case, read: Callable[[str], Any]) -> None:
        start(num_devices=case.mesh.num_devices)
        import torch_xla.debug.profiler as xp
        import torch_xla.distributed.spmd as xs

        self.case = case.at(phases=("prefill",))
        sizes = case.mesh.axes
        self.mesh = xs.Mesh(np.arange(case.mesh.num_devices), tuple(sizes.values()), tuple(sizes))
        self.programs = {
            phase: witness.program(case.at(phases=(phase,)), enter=xp.Trace) for phase in ("prefill", "decode")
        }
        program = self.programs["prefill"]
        values = load_values(witness, program, read, case=self.case)
        self.weights = {each.name: self._put(values[each.name], each) for each in program.of_role("weight")}
        self.cache = {each.name: self._put(np.zeros(each.shape), each) for each in program.of_role("cache")}
        self.scores: Any = None
        """The last step's logits of each sequence, f32 [batch, vocab]."""

    def prefill(self, tokens: Any) -> Any:
        return self._step("prefill", {"tokens": tokens})

    def decode(self, tokens: Any, *, position: int) -> Any:
        return self._step("decode", {"tokens": tokens, "position": np.array(position)})

    def _step(self, phase: str, inputs: Mapping[str, Any]) -> Any:
        import torch_xla

        program = self.programs[phase]
        given = {each.name: self._put(inputs[each.name], each) for each in program.of_role("input")}
        ids, logits, kept = _run(program, {**self.weights, **self.cache, **given})
        torch_xla.sync()
        self.scores = logits.cpu().float().numpy()
        self.cache = {each.name: self._put(kept[each.name].cpu().numpy(), each) for each in program.of_role("cache")}
        return ids.cpu().numpy()

    def _put(self, value: Any, each: Argument) -> Any:
        import torch
        import torch_xla
        import torch_xla.distributed.spmd as xs

        tensor = torch.from_numpy(np.array(value)).to(_dtypes(torch)[each.dtype]).to(torch_xla.device())
        xs.mark_sharding(tensor, self.mesh, each.axes(self.case))
        return tensor
