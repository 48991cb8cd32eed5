"""The twins are twins: the same files, classes, functions and parameters, but for a list with reasons.

Read from the source, so that neither framework is imported.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.places import ROOT

JAX, TORCH = ROOT / "jax_impl", ROOT / "torchxla_impl"
PROTOCOL = ROOT / "meshes" / "twins" / "layout.py"

CALL = "forward"
"""What PyTorch calls the method that Flax calls `__call__`."""

_DEVICES = "they measure a device, not a framework"

LONE_FILES: Mapping[str, str] = {
    "jax_impl/convert.py": "Orbax is JAX's checkpoint format",
    "jax_impl/microbenchmarks/__init__.py": _DEVICES,
    "jax_impl/microbenchmarks/__main__.py": _DEVICES,
    "jax_impl/microbenchmarks/kernels.py": _DEVICES,
    "jax_impl/microbenchmarks/meter.py": _DEVICES,
    "jax_impl/sharding/typed.py": "PyTorch/XLA's tensors bear no shardings in their types",
    "torchxla_impl/decoder/arguments.py": "JAX's arguments are shapes with shardings, in the tree that its jit takes",
    "torchxla_impl/decoder/scan.py": "torch_xla's scan forgets source lines, and its public half takes no integers",
    "torchxla_impl/decoder/update_slice.py": "JAX has it: `jax.lax.dynamic_update_slice`",
    "torchxla_impl/own.py": "a user's JAX program needs no start-up: compare takes what jax.jit lowers",
    "torchxla_impl/process/locations.py": "JAX takes the machine's folders off its source lines itself",
    "torchxla_impl/process/scalars.py": "JAX compiles no argument as a constant",
    "torchxla_impl/process/stablehlo.py": "JAX lowers to StableHLO itself",
}
"""File of one twin alone -> why."""

_VARIANT = "a variant of attention that JAX's call has no need of"
_MANUAL = (
    "PyTorch/XLA 2.9 has no permute and no gather in a manually sharded region: there are no stages, parts, experts"
)
_TRACED = "JAX lowers an abstract program, PyTorch/XLA a graph of placeholder tensors"

EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("decoder/attention.py", "ring_attention"): "PyTorch/XLA has no ring",
    ("decoder/attention.py", "merged_attention"): "of style explicit with cp, which PyTorch/XLA does not offer",
    ("decoder/attention.py", "open_attention"): "of style typed with cp: PyTorch/XLA's types bear no shardings",
    ("decoder/attention.py", "gathered_attention"): "in place of the ring",
    ("decoder/attention.py", "grouped_sdpa"): _VARIANT,
    ("decoder/attention.py", "heads_first_attention"): _VARIANT,
    ("decoder/attention.py", "per_sequence_attention"): _VARIANT,
    ("decoder/attention.py", "choose_formulation"): _VARIANT,
    ("decoder/step.py", "Step.form"): "a Flax module is split in its structure and its weights",
    ("decoder/step.py", "Step.model"): "a PyTorch module takes its weights as it is called",
    ("patterns/attention.py", "context_ring"): "PyTorch/XLA has no ring",
    ("patterns/blocks.py", "ragged_experts"): "PyTorch/XLA has no ragged dot",
    ("process/about.py", "describe_program"): _TRACED,
    ("process/about.py", "compile_options"): "JAX is asked for them; those of torch_xla's runtime are written down",
    ("process/about.py", "partitioner"): "JAX has two; PyTorch/XLA takes GSPMD",
    ("process/about.py", "bytecode"): "of PyTorch/XLA it is made in process/stablehlo.py",
    ("process/about.py", "lower_graph"): _TRACED,
    ("process/loading.py", "make_weights"): "for jax_impl.convert",
    ("process/start.py", "configure"): "JAX is told the partitioner, and to cut the machine's folders off source lines",
    ("sharding/create.py", "abstract_layout"): "a mesh of PyTorch/XLA is always one of devices, virtual ones at least",
    **{("sharding/explicit.py", f"ExplicitLayout.{verb}"): _MANUAL for verb in (
        "cache_index", "cache_positions", "collect", "from_experts", "last_tokens", "max_over_parts",
        "on_active_stages", "on_first_stage", "on_last_stage", "positions", "ring", "shift", "sum_over_parts", "ticks",
        "tick_form", "to_experts", "cache_slot",
    )},
    ("sharding/explicit.py", "ExplicitLayout.param"): "shard_map hands out parts of weights; a manual region does not",
    ("sharding/explicit.py", "check"): _MANUAL,
    ("sharding/lowering.py", "abstract_array"): _TRACED,
    ("sharding/lowering.py", "abstract_weights"): _TRACED,
    ("sharding/lowering.py", "jit_step"): _TRACED,
    ("sharding/lowering.py", "placeholder"): _TRACED,
    ("sharding/lowering.py", "format_sharding"): "a placeholder bears no sharding: it is written onto the parameter",
    ("sharding/lowering.py", "shard"): "of JAX it is `jax.device_put`",
    **{("decoder/plain_layer.py", name): "written as users of each framework write it" for name in (
        "LlamaDecoderLayer.__init__", "LlamaDecoderLayer.shard", "LlamaDecoderLayer.pin", "LlamaDecoderLayer.rotate",
        "norm", "linear", "pin", "rotate",
    )},
    ("sharding/spec.py", "named_sharding"): "a sharding is a value in JAX ...",
    ("sharding/spec.py", "mark"): "... and in PyTorch/XLA a mark on a tensor",
    ("sharding/spec.py", "annotate"): "... or on one without data",
    ("sharding/spec.py", "constant"): "a host array is a parameter of a PyTorch/XLA program, and a constant of JAX's",
}  # fmt: skip
"""File and name of what one twin alone has, or has otherwise -> why."""


def files(arm: Path) -> set[str]:
    return {file.relative_to(arm).as_posix() for file in arm.rglob("*.py")}


def signature(function: ast.FunctionDef) -> str:
    """Names, order, kinds and defaults of the parameters; annotations may name the framework's own types."""
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    decorated = [ast.unparse(each) for each in function.decorator_list]
    kind = [word for word in decorated if word in ("property", "classmethod", "staticmethod", "contextmanager")]
    return " ".join([*kind, f"({ast.unparse(arguments)})"])


def members(nodes: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Classes with their bases' number of words left out, public functions, methods and fields -> what each is."""
    for node in nodes:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, "class"
            yield from members(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name.startswith("__")):
            name = "__call__" if prefix and node.name == CALL else node.name
            yield prefix + name, signature(node)
        elif prefix and isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield prefix + node.target.id, "field"


def surface(file: Path) -> dict[str, str]:
    return dict(members(ast.parse(file.read_text(encoding="utf-8")).body))


def differences(file: str) -> set[tuple[str, str]]:
    jax, torch = surface(JAX / file), surface(TORCH / file)
    return {(file, name) for name in jax.keys() | torch.keys() if jax.get(name) != torch.get(name)}


BOTH = sorted(files(JAX) & files(TORCH))


def test_files_of_one_twin_alone_have_a_reason():
    lone = {
        f"{arm.name}/{file}" for arm, names in ((JAX, files(JAX)), (TORCH, files(TORCH))) for file in names - set(BOTH)
    }
    assert lone == set(LONE_FILES)


@pytest.mark.parametrize("file", BOTH)
def test_a_file_has_the_same_classes_functions_and_parameters_in_both(file):
    assert differences(file) == {key for key in EXCEPTIONS if key[0] == file}


@pytest.mark.parametrize("arm", [JAX, TORCH], ids=lambda arm: arm.name)
def test_a_layout_has_the_verbs_of_the_protocol_and_no_others(arm):
    protocol = {name: what for name, what in surface(PROTOCOL).items() if name.startswith("Layout.")}
    layout = {name: what for name, what in surface(arm / "sharding/layout.py").items() if name.startswith("Layout.")}
    assert len(protocol) > 20
    fields = {"Layout.case", "Layout.mesh"}  # of the dataclass; the protocol has the case as a property
    without_context = {name: what.removeprefix("contextmanager ") for name, what in layout.items()}
    assert {n: w for n, w in without_context.items() if n not in fields} == {
        n: w for n, w in protocol.items() if n not in fields
    }


@pytest.mark.parametrize("arm", [JAX, TORCH], ids=lambda arm: arm.name)
def test_the_explicit_layout_overrides_verbs_and_adds_none(arm):
    protocol = surface(PROTOCOL)
    explicit = surface(arm / "sharding/explicit.py")
    verbs = {name: what for name, what in explicit.items() if name.startswith("ExplicitLayout.")}
    assert len(verbs) >= 5
    for name, what in verbs.items():
        assert what == protocol[name.replace("ExplicitLayout.", "Layout.")], name
