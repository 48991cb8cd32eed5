"""The workload card: every key of CCL-Bench's `workload_card_template.yaml`, for one program of a run."""

from collections.abc import Mapping
from types import MappingProxyType

import yaml

from compare.export.folder.exported_programs import SelectedProgram
from compare.schedule.hardware import dcn_bytes_per_s
from compare.timeline.timeline import UNKNOWN
from meshes.case import Case

CardValue = str | int | bool | None | list["CardValue"] | dict[str, "CardValue"]
Card = dict[str, CardValue]

_HUGGING_FACE = MappingProxyType(
    {
        "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
        "llama-3.1-70b": "meta-llama/Llama-3.1-70B",
        "llama-3.1-405b": "meta-llama/Llama-3.1-405B",
        "qwen3-4b": "Qwen/Qwen3-4B",
        "qwen3-32b": "Qwen/Qwen3-32B",
        "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
        "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
        "qwen1.5-moe-a2.7b": "Qwen/Qwen1.5-MoE-A2.7B",
        "phi-4": "microsoft/phi-4",
    }
)
"""Where a preset's weights are published."""
_FRAMEWORKS = MappingProxyType({"jax": ("flax", "jax_xla"), "torchxla": ("torchxla", "xla")})
_PRECISIONS = MappingProxyType({"bf16": "bf16", "f32": "fp32"})
_HOST_CHIPS = 4
"""Of a host of a slice of several; a slice of up to 8 chips may be one host's."""
_ONE_HOST_CHIPS = 8
_DECODE, _CPU = "decode", "cpu"


def write_card(timed: SelectedProgram, *, trace: str) -> str:
    """The card as YAML.  trace: the file's name in the card's folder."""
    return yaml.safe_dump(make_card(timed, trace=trace), sort_keys=False, allow_unicode=True, width=100)


def make_card(timed: SelectedProgram, *, trace: str) -> Card:
    """The card's keys, in the template's order; what is not known is null."""
    program, steps = timed.program, timed.timeline.num_steps
    case, model = program.case, program.case.model
    return {
        "version": 1,
        "description": _description(timed),
        "hf_url": f"https://huggingface.co/{_HUGGING_FACE[model.name]}" if model.name in _HUGGING_FACE else None,
        "trace_url": trace,
        "contributor": None,
        "contact": None,
        "workload": {
            "model": {
                "phase": "inference",
                "moe": bool(model.experts),
                "granularity": "model_fwd",
                "model_family": model.name,
                "precision": _PRECISIONS[case.dtype],
                "epochs": 1,
                "iteration": steps,
                "model_arch": _architecture(case),
            },
            "data": {
                "batch_size": case.batch,
                "seq_len": case.seq,
                "input_len": case.seq,
                # A prefill gives the first token; each step of decode one more.
                "output_len": 1 + steps if case.phase == _DECODE else 1,
                "dataset": "synthetic",
            },
            "hardware": _hardware(timed),
        },
        "Model-executor": _executor(timed),
        "metric_source": {"traces": ["json_tpu"], "metrics_specific_trace": [None]},
    }


def _description(timed: SelectedProgram) -> str:
    """Which program it is, and whether its times are measured or modelled."""
    result, case = timed.program.result, timed.program.case
    lost = int(timed.timeline.events["device"].eq(UNKNOWN).sum())
    left_out = f" {lost} events whose device the profile does not show are left out." if lost else ""
    return (
        f"{case.model.name}, {case.phase}, {case.plan.name} on {case.topology.name}, batch {case.batch}, "
        f"sequence {case.seq}, {case.microbatches} microbatches: {'/'.join(result.key)} of wirediff's run "
        f"{timed.run.case.name}. Its times are {timed.timeline.source}: {timed.timeline.label}." + left_out
    )


def _architecture(case: Case) -> Card:
    model = case.model
    known: Card = {
        "num_params": model.num_parameters,
        "num_params_embedding": model.vocab * model.embed,
        "num_layers": model.layers,
        "num_heads": model.heads,
        "head_dim": model.head_dim,
    }
    return known | ({"num_params_active": model.num_active_parameters} if model.experts else {})


def _hardware(timed: SelectedProgram) -> Card:
    case, about = timed.program.case, timed.program.about
    topology, chip = case.topology, case.topology.generation
    ran_on = (about.executed or {}).get("platform")
    chips = case.mesh.num_devices // chip.devices
    network: Card = {
        "topology": f"{chip.torus_dims}d torus",
        "bandwidth_gbps": [_between_slices(case), _between_chips(case)],
    }
    if ran_on == _CPU:
        network = {"topology": "shared memory", "bandwidth_gbps": ["N/A", "N/A"]}
        chips = case.mesh.num_devices
    versions = about.versions or {}
    return {
        "network_topo": network,
        "xpu_spec": {
            "type": "CPU" if ran_on == _CPU else "TPU",
            "model": "virtual_cpu_device" if ran_on == _CPU else f"tpu_{topology.generation_name}",
            "total_count": chips,
            "count_per_node": chips if chips <= _ONE_HOST_CHIPS or ran_on == _CPU else _HOST_CHIPS,
        },
        "driver_version": f"libtpu_{versions['libtpu']}" if "libtpu" in versions and ran_on != _CPU else "xla",
    }


def _between_chips(case: Case) -> CardValue:
    """All links of a chip, one way, in Gbit/s."""
    chip = case.topology.generation
    if chip.ici_link_bytes_per_s is None:
        return "N/A"
    return round(chip.ici_link_bytes_per_s * 2 * chip.torus_dims * 8 / 1e9)


def _between_slices(case: Case) -> CardValue:
    """A chip's share of its host's network, one way, in Gbit/s; of one slice none."""
    chip = case.topology.generation
    if case.topology.slices == 1:
        return "N/A"
    return round(dcn_bytes_per_s(chip) * 8 / 1e9)


def _executor(timed: SelectedProgram) -> Card:
    case, about, arm = timed.program.case, timed.program.about, timed.program.result.arm
    name, compiler = _FRAMEWORKS.get(arm, (arm, "xla"))
    versions: Mapping[str, str] = about.versions or {}
    axes = case.mesh.axes
    sequences = case.batch // (axes["dp"] * axes["ep"] * case.microbatches)
    framework: Card = {"name": name, "compiler_tool_selection": compiler}
    of_framework = versions.get("flax" if arm == "jax" else "torch_xla")
    return {
        "framework": framework | ({"version": of_framework} if of_framework else {}),
        "model_plan_parallelization": {
            "dp_replicate": axes["dp"],
            "dp_shard": 1,
            "tp": axes["tp"],
            "pp": axes["pp"],
            "cp": axes["cp"],
            "ep": axes["ep"],
            "pp_mb": sequences,
        },
        "communication_library": {"name": "xla", "version": versions.get("libtpu"), "env": {}},
        "protocol_selection": ["xla_collectives", "ici", *(["dcn"] if case.topology.slices > 1 else [])],
    }
