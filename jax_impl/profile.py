"""Run one phase and record it with `jax.profiler`: `python -m jax_impl.profile CASE.json OUTDIR cpu|tpu`.

On virtual CPU devices, or on the TPUs of this machine, in order of their ids; all else is the same.  Weights and cache
are random.  Writes OUTDIR/trace/plugins/profile/<phase>/jax.xplane.pb, which TensorBoard opens, and OUTDIR/about.json.
One JSON line on stdout as each stage begins.  Exit 0; 1: it failed; 2: the request can't be met, and the last line on
stderr says why.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from jax_impl.process.start import configure, start
from meshes.case import Case
from meshes.process.last_word import claim_stderr
from meshes.twins.worker import STEPS, WARMUP_STEPS, Stages, serve, write_about

POWER_EVENTS: Mapping[str, int | bool] = MappingProxyType(
    {
        "tpu_power_trace_level": 2,
        "tpu_e2e_enable_fw_power_level_event": True,
        "tpu_e2e_enable_fw_throttle_event": True,
        "tpu_e2e_enable_fw_thermal_event": True,
    }
)
"""Options of libtpu's profiler for power, throttling and temperature; off by default (docs/power.md)."""


def profile(case: Case, out: Path, platform: str) -> None:
    """Write the profile of this case's only phase, and its about.json."""
    case, stages = case.at(phases=(case.phase,)), Stages()
    stages.begin("import")
    start(platform=platform, num_devices=case.mesh.num_devices)
    import jax

    from jax_impl.decoder.step import Step
    from jax_impl.process import about, loading
    from jax_impl.sharding.create import layout_on_devices
    from jax_impl.sharding.lowering import jit_step
    from meshes.process.random_inputs import draw_values

    configure(case)
    stages.begin("load")
    step, numbers = Step.of(layout_on_devices(case)), partial(draw_values, vocab=case.model.vocab, position=case.seq)
    weights, cache = loading.load_weights(step, numbers), loading.load_cache(step, numbers)
    inputs = loading.load_inputs(step, numbers)
    stages.begin("compile")
    traced = jit_step(step.layout, step.run, output_dims=step.output_dims).trace(*step.arguments)
    lowered = traced.lower()
    run = lowered.compile()
    stages.begin("warm up")
    for _ in range(WARMUP_STEPS):
        _, cache = jax.block_until_ready(run(weights, cache, *inputs))
    stages.begin("record")
    with record_trace(out, phase=case.phase):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation(case.phase, step_num=number):
                _, cache = jax.block_until_ready(run(weights, cache, *inputs))
        stages.begin("write")
    executed = {
        "platform": platform,
        "device_kind": jax.devices()[0].device_kind,
        "num_devices": case.mesh.num_devices,
        "warmup_steps": WARMUP_STEPS,
        "steps": STEPS,
        "runtime": "jax",
    }
    write_about(
        out, about.describe_program(step, traced, lowered) | {"executed": executed, "seconds": stages.seconds()}
    )


@contextmanager
def record_trace(out: Path, *, phase: str) -> Iterator[None]:
    """Record a profile of this block, without Python frames; of TPUs with their power events, which CPUs lack."""
    import jax

    folder = out / "trace" / "plugins" / "profile" / phase
    folder.mkdir(parents=True, exist_ok=True)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.advanced_configuration = dict(POWER_EVENTS)
    with TemporaryDirectory(dir=out) as temporary:
        jax.profiler.start_trace(temporary, profiler_options=options)
        try:
            yield
        finally:
            jax.profiler.stop_trace()
        # It is written beside a summary, both under the time and the machine's name.
        (recorded,) = Path(temporary).rglob("*.xplane.pb")
        recorded.replace(folder / "jax.xplane.pb")


def main(argv: list[str]) -> int:
    return serve(profile, argv, usage="python -m jax_impl.profile CASE.json OUTDIR cpu|tpu", framework="JAX")


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
