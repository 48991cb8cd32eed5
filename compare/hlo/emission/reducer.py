"""How a reducing collective joins the parts of its members."""

from compare.hlo.emission import megascale
from compare.hlo.text.instruction import Instruction

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
    if root.opcode in REDUCERS and not ("add" in joins and "bitcast-convert" in joins):
        return root.opcode
    return "add" if "add" in joins else ""
