"""Local copies: which operations start one or wait for it, and from which memory to which they copy.

A local copy stays on one device and its host: `copy-start`, slices between memories, sends and receives of the host.
It runs beside the TensorCore; what stands on the device's main line is the start, and the wait for its end, the done.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from compare.hlo.text.instruction import Instruction
from compare.hlo.text.module import Module

_MOVES = "copy|slice|dynamic-slice|dynamic-update-slice"
_ENDS = "start|update|done"
_NAMED = re.compile(rf"(?:{_MOVES})-(?:{_ENDS})(?:\.[\w\-]+)*")
_OPCODE = re.compile(rf" ((?:{_MOVES}|async)-(?:{_ENDS})|(?:send|recv)(?:-done)?|infeed|outfeed)\(")
_OWN = re.compile(rf"(?:{_MOVES})-(?:{_ENDS})")
_WRAPPED = re.compile(_MOVES)
_OF_HOST = re.compile(r"host (?:send|recv)(?:-done)?|infeed|outfeed")
"""Of XLA's `hlo_category`."""
_ARRAY = re.compile(r"\b[a-z]\w*\[[^\]]*\](\{[^}]*\})?")
_SPACE = re.compile(r"S\((\d+)\)")

#   %copy-start.1 = (f32[1000]{0:T(1024)}, f32[1000]{0:T(1024)S(5)}, u32[]{:S(2)}) copy-start(…)      from the host
# S(1) is where libtpu prefetches to, `copy-start.1 = (bf16[16,1,4096]{2,0,1:T(8,128)(2,1)S(1)}, …)`; S(2) is of context
# words, and S(6) of scalars such as `bitcast-convert.135 = s32[]{:T(128)S(6)}`.
_MEMORIES = {0: "HBM", 1: "on-chip memory", 5: "host", 6: "scalar memory"}
"""Memory spaces of a TPU, as libtpu writes them in layouts, `S(5)`."""
TO_HOST, FROM_HOST = "HBM → host", "host → HBM"


def find_local_copies(module: Module) -> Mapping[str, str]:
    """Names of a program's starts of local copies and of the waits for them -> from which memory to which.

    "" where the shapes do not say.
    """
    lines = dict.fromkeys(module.line_at(match.start()) for match in _OPCODE.finditer(module.text))
    items = [owner.at(at) for at in lines if (owner := module.owner(at))]
    return {item.name: _moves(item) for item in items if _is_local(item)}


def local_copy_of(name: str, text: str, category: str) -> str | None:
    """The same of one operation of a profile, by its line of HLO, else by its category and name; `None` for any other.

    The line of an `async-start` does not show what it calls, and its name does: XLA names it after that.
    """
    if text:
        match = _OPCODE.search(text)
        if match is None or not (_OWN.fullmatch(match[1]) or _is_of_host(match[1], text) or _is_named(match[1], name)):
            return None
        return _route(match[1], text, name)
    if category and _OF_HOST.fullmatch(category.lower()):
        return TO_HOST if re.search("send|out", category) else FROM_HOST
    return "" if _NAMED.fullmatch(name) else None


def _is_named(opcode: str, name: str) -> bool:
    return opcode.startswith("async-") and bool(_NAMED.fullmatch(name))


def _is_of_host(opcode: str, text: str) -> bool:
    """A transfer between slices is one of the host, too, by the attribute; it communicates."""
    is_transfer = opcode.startswith(("send", "recv"))
    return not opcode.startswith("async") and (
        "is_host_transfer=true" in text and "megascale" not in text if is_transfer else opcode in ("infeed", "outfeed")
    )


def _is_local(item: Instruction) -> bool:
    if item.opcode.startswith("async-"):
        begun = _begun_by(item)
        return bool(begun.callees) and bool(_WRAPPED.fullmatch(begun.callees[0].root.opcode))
    return bool(_OWN.fullmatch(item.opcode)) or _is_of_host(item.opcode, item.text)


def _begun_by(item: Instruction) -> Instruction:
    """The start of an asynchronous operation."""
    while not item.opcode.endswith("-start") and item.operands:
        item = item.operand(0)
    return item


def _moves(item: Instruction) -> str:
    if item.opcode.startswith("async-") or _OWN.fullmatch(item.opcode):
        begun = _begun_by(item)
        kind = begun.callees[0].root.opcode if begun.callees else begun.opcode
        return _route(begun.opcode, begun.text, kind)
    return _route(item.opcode, item.text, item.name)


def _route(opcode: str, text: str, name: str) -> str:
    """From the memories in the shapes of a start's result, or of the operand of its done.

    A copy's tuple is (result, source, context), any other's ((operands), result, context); what an update writes to is
    both its first operand and its result: its source is the second.
    """
    if opcode.startswith(("send", "outfeed")):
        return TO_HOST
    if opcode.startswith(("recv", "infeed")):
        return FROM_HOST
    result, operands = _split(opcode, text)
    spaces = result if opcode.endswith("-start") else operands
    if opcode.startswith("copy"):
        # copy-start has (result, source, context), all the others ((operands), result, context).
        return _words(spaces[1], spaces[0]) if len(spaces) > 2 else ""
    #   %dynamic-update-slice-start.1 = ((HOST, f32[8]{0}, s32[]), HOST, u32[]) async-start(HOST %buffer, … %new, …)
    # HOST, the buffer, is in the host's memory before and after; what moves there is %new.
    is_update = name.startswith("dynamic-update-slice")
    return _words(spaces[1 if is_update else 0], spaces[-2]) if len(spaces) > 2 else ""


def _split(opcode: str, text: str) -> tuple[Sequence[int], Sequence[int]]:
    """The memory spaces of the arrays of a line's result, and of its first operand, where the line has its shape."""
    head, _, rest = text.partition(f" {opcode}(")
    return list(_spaces(head.partition("=")[2])), list(_spaces(rest.partition(" %")[0]))


def _spaces(shapes: str) -> Iterator[int]:
    for match in _ARRAY.finditer(shapes):
        space = _SPACE.search(match[1] or "")
        yield int(space[1]) if space else 0


def _words(source: int, target: int) -> str:
    return " → ".join(_MEMORIES.get(space, f"memory S({space})") for space in (source, target))
