"""The form in which the compiler emits a collective, and instructions that are parts of another's."""

import re

from compare.hlo.counts.execution_counts import Site
from compare.hlo.counts.partition_index import depends_on_partition
from compare.hlo.dataflow.dataflow import CallContext
from compare.hlo.devices.axes import Mesh
from compare.hlo.devices.groups import Groups
from compare.hlo.emission import megascale
from compare.hlo.emission.megascale import is_megascale
from compare.hlo.text.attributes import read_map
from compare.hlo.text.instruction import Instruction

_MATMUL = re.compile(r"(?:^|/)(?:dot_general|dot|\w*(?:einsum|matmul|linear|bmm|addmm|__mm))(?:\.\d+)?(?:\[.*)?$")
"""The last part of an `op_name`: JAX's `dot_general`, torch_xla's `aten__einsum`, `aten__mm` and so on."""
_LAYOUT_OPS = {"bitcast", "copy", "reshape", "convert", "transpose", "tuple", "get-tuple-element"}


def form_of(item: Instruction, frame: CallContext | None, *, kind: str, pairs: Groups, mesh: Mesh) -> str:
    """The first form that fits, in the order of `definitions.md`."""
    calls = [context.call for context in frame.chain if context.call] if frame else []
    if is_megascale(item):
        return "megascale"
    # On tpu7x libtpu has the SparseCore run a collective as a call of its own:
    #   call-start(%param.1, …), async_execution_thread="sparsecore", to_apply=%called_computation
    if any(call.attributes.get("async_execution_thread") == '"sparsecore"' for call in calls):
        return "sparsecore-call"
    if kind == "reduce-scatter" and item.opcode.startswith("all-reduce"):
        return "fused-reduce-scatter"
    # No attribute marks the hops of a windowed einsum: they have the name of the matmul that they overlap, and make a
    # ring.
    #   collective-permute-start(%broadcast), channel_id=3, source_target_pairs={{0,3},{1,0},{2,1},{3,2},…},
    #   metadata={op_name="jit(mlp)/dot_general" stack_frame_id=2}
    if kind == "collective-permute" and _is_matmul(item) and mesh.is_ring_step(pairs):
        return "windowed-einsum"
    # A chain id or a name for asynchronous use alone is not enough; libtpu also runs synchronously
    #   all-gather(%get-tuple-element.1766), …, frontend_attributes={async_collective_name="all-gather-start.2"}
    if starts_chain(item):
        return "async-fusion"
    if item.opcode.endswith("-start") or item.opcode == "send" or any(call.opcode.endswith("-start") for call in calls):
        return "start-done"
    return "sync"


def _is_matmul(item: Instruction) -> bool:
    # A user's own `jax.lax.ppermute` beside a matmul is no windowed einsum: `jit(f)/ppermute/dot_general`.
    return "ppermute" not in item.op_name and bool(_MATMUL.search(item.op_name))


def kind_of(item: Instruction) -> str:
    """XLA's kind; an all-reduce in a fusion that keeps only each device's part is a reduce-scatter."""
    kind = item.opcode.removesuffix("-start")
    if kind == "all-reduce" and _keeps_a_part(item):
        return "reduce-scatter"
    return kind


def _keeps_a_part(item: Instruction) -> bool:
    callers = item.computation.callers
    if not any(caller.opcode == "fusion" for caller in callers):
        return False
    # libtpu fuses an all-reduce with the slice that each device keeps of it, and names the computation for that:
    #   fusion(%fusion.1), kind=kCustom, calls=%all-reduce-scatter
    return "all-reduce-scatter" in item.computation.name or _only_sliced(item)


def _only_sliced(item: Instruction) -> bool:
    """True if every use, through reshapes and the like, is a dynamic-slice at the device's own index."""
    todo, sliced = [item], False
    while todo:
        now = todo.pop()
        for user in now.users:
            if user.opcode == "dynamic-slice" and user.operand(0) is now:
                # A slice at an index from data keeps no device's own part; the compiler looks the own part up by the
                # device:
                #   piece = s32[1]{0} dynamic-slice(table, place), dynamic_slice_sizes={1}
                if not any(map(depends_on_partition, user.operands[1:])):
                    return False
                sliced = True
            elif user.opcode in _LAYOUT_OPS and user is not user.computation.root:
                todo.append(user)
            else:
                return False
        if not now.users:
            return False
    return sliced


def starts_chain(item: Instruction) -> bool:
    """True if it is in the computation of an `AsyncCollectiveStart` (async collective fusion)."""
    return chain_of(item) is not None and feeds(item, "AsyncCollectiveStart")


def feeds(item: Instruction, target: str) -> bool:
    """True if a custom call of this target consumes its result, possibly re-laid out."""
    todo = [item]
    while todo:
        for user in todo.pop().users:
            if user.target == target:
                return True
            if user.opcode in _LAYOUT_OPS:
                todo.append(user)
    return False


def chain_of(item: Instruction) -> str | None:
    """The `chain_id` that ties the parts of an async collective fusion."""
    if "chain_id" not in item.text:
        return None
    return read_map(item.attributes.get("frontend_attributes", "{}")).get("chain_id")


def find_chain_starts(sites: list[Site]) -> dict[Instruction, Instruction]:
    """Instruction that continues an asynchronous collective -> the one that starts it.

    Numbers of chains may be used again: the start is the last before it in the schedule, or, where a loop carries
    the collective over to its next iteration, the next after it.
    """
    members = [(site.item, chain) for site in sites if (chain := chain_of(site.item)) is not None]
    begins = {item for item, _ in members if starts_chain(item)}
    ahead = {chain: item for item, chain in reversed(members) if item in begins}
    parts: dict[Instruction, Instruction] = {}
    starts: dict[str, Instruction] = {}
    for item, chain in members:
        if item in begins:
            starts[chain] = item
        elif start := starts.get(chain) or ahead.get(chain):
            # One gather stands in each fusion that starts it, carries it on or ends it, with the same
            #   frontend_attributes={chain_id="0"}
            if any(caller.opcode == "fusion" for caller in item.computation.callers):
                parts[item] = start
        elif "async_collective_fusion_config" in item.text or feeds(item, "AsyncCollectiveDone"):
            raise item.error("this part of an async collective has no start in the text")
    return parts


REDUCERS = ("add", "maximum", "minimum", "multiply", "and", "or", "xor")
"""Opcodes that join two parts, as XLA spells them."""
_HANDED_ON = ("convert", "bitcast", "copy", "reduce-precision")


def reducer_of(item: Instruction) -> str:
    """The one opcode of its reduction that joins two parts; empty where it reduces nothing, or in an unknown way.

    libtpu adds f8 up inside words of 32 bits, whose parts it shifts into place and joins again: that is `add`.
    """
    if megascale.is_megascale(item):
        return megascale.reducer_of(item)
    if not item.callees:
        return ""
    root = item.callees[0].root
    while root.opcode in _HANDED_ON:
        root = root.operand(0)
    joins = {part.opcode for part in item.callees[0]}
    # A sum of bf16 is computed wide, `c = f32[] add(a, b)` and `ROOT s = bf16[] convert(c)`; where f8 is added inside
    # of words, with `e = u8[] bitcast-convert(d)`, the root joins words again, and not numbers.
    if root.opcode in REDUCERS and not ("add" in joins and "bitcast-convert" in joins):
        return root.opcode
    return "add" if "add" in joins else ""
