"""Run one phase and record it with `torch_xla`'s profiler: `python -m torchxla_impl.profile CASE.json OUTDIR cpu|tpu`.

On virtual CPU devices, or on the TPUs of this machine, in order of their ids; all else is the same.  Weights and cache
are random.  Writes OUTDIR/trace/plugins/profile/<phase>/torchxla.xplane.pb, which TensorBoard opens, and
OUTDIR/about.json.  One JSON line on stdout as each stage begins.  Exit 0; 1: it failed; 2: the request can't be met,
and the last line on stderr says why.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from meshes.case import Case
from meshes.process.last_word import claim_stderr
from meshes.twins.worker import STEPS, WARMUP_STEPS, Stages, serve, write_about
from torchxla_impl.process.start import start


def profile(case: Case, out: Path, platform: str) -> None:
    """Write the profile of this case's only phase, and its about.json."""
    case, stages = case.at(phases=(case.phase,)), Stages()
    stages.begin("import")
    start(platform=platform, num_devices=case.mesh.num_devices)
    import torch_xla
    from torch.utils import _pytree as tree

    from meshes.process.random_inputs import draw_values
    from torchxla_impl.decoder.step import Step
    from torchxla_impl.process import about, loading
    from torchxla_impl.sharding.create import layout_on_devices

    stages.begin("load")
    step, numbers = Step.of(layout_on_devices(case)), partial(draw_values, vocab=case.model.vocab, position=case.seq)
    weights, cache = loading.load_weights(step, numbers), loading.load_cache(step, numbers)
    inputs = loading.load_inputs(step, numbers)
    stages.begin("compile")
    ids, new_cache = step.run(weights, cache, *inputs)
    given = [*weights.values(), *tree.tree_leaves(cache), *inputs]
    outputs = [ids, *tree.tree_leaves(new_cache)]
    description = about.describe_program(step, about.lower_graph(outputs), given, outputs=outputs)
    del ids, new_cache, outputs
    _advance(step, weights, cache, inputs)
    stages.begin("warm up")
    for _ in range(WARMUP_STEPS):
        _advance(step, weights, cache, inputs)
    stages.begin("record")
    with record_trace(out, phase=case.phase):
        for number in range(STEPS):
            # `xp.StepTrace` would put its name before every scope.
            with torch_xla._XLAC.profiler.TraceMe(case.phase, _r=1, step_num=number):
                _advance(step, weights, cache, inputs)
        stages.begin("write")
    executed = {
        "platform": platform,
        "device_kind": torch_xla.runtime.device_type(),
        "num_devices": case.mesh.num_devices,
        "warmup_steps": WARMUP_STEPS,
        "steps": STEPS,
        "runtime": "torch_xla",
    }
    write_about(out, description | {"executed": executed, "seconds": stages.seconds()})


def _advance(step: Any, weights: Any, cache: Any, inputs: Any) -> None:
    """One step, traced, found among the programs that are compiled, run and waited for; the cache is overwritten."""
    import torch_xla.core.xla_model as xm
    from torch.utils import _pytree as tree

    ids, new_cache = step.run(weights, cache, *inputs)
    kept = tree.tree_leaves(cache)
    for old, new in zip(kept, tree.tree_leaves(new_cache), strict=True):
        old.copy_(new)
    # The results and no more: `sync` would also bring back whatever tensor is still alive.
    xm.unlazy([ids, *kept])
    # That waited until the devices had begun.
    xm.wait_device_ops()


@contextmanager
def record_trace(out: Path, *, phase: str) -> Iterator[None]:
    """Record a profile of this block."""
    import torch_xla.debug.profiler as xp

    folder = out / "trace" / "plugins" / "profile" / phase
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out) as temporary:
        xp.start_trace(temporary)
        try:
            yield
        finally:
            xp.stop_trace()
        # It is written beside a summary, both under the time and the machine's name.
        (recorded,) = Path(temporary).rglob("*.xplane.pb")
        recorded.replace(folder / "torchxla.xplane.pb")


def main(argv: list[str]) -> int:
    return serve(
        profile, argv, usage="python -m torchxla_impl.profile CASE.json OUTDIR cpu|tpu", framework="PyTorch/XLA"
    )


if __name__ == "__main__":
    claim_stderr()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
