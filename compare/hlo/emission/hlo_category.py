"""XLA's `hlo_category` of an instruction, by which its profilers group operations."""

from compare.hlo.text.instruction import Instruction

_FUSIONS = {"kLoop": "loop fusion", "kInput": "input fusion", "kOutput": "output fusion", "kCustom": "custom fusion"}
_PRODUCTS = ("convolution", "dot")
_MOVES = ("copy", "transpose", "reshape", "bitcast-convert", "pad", "concatenate", "slice", "reverse")


def category_of(item: Instruction) -> str:
    """XLA's `hlo_category` of an instruction that is no collective, as its profiler names them."""
    if item.opcode != "fusion":
        return "data formatting" if item.opcode in _MOVES else item.opcode
    inside = [inner.opcode for computation in item.callees for inner in computation]
    if any(opcode in _PRODUCTS for opcode in inside):
        return "convolution fusion"
    return _FUSIONS.get(item.attributes.get("kind", ""), "fusion")
