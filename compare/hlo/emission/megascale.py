"""Collectives between slices: a send and a receive that the megascale runtime turns into one collective.

Attributes of the pair describe it: `_xla_megascale_transfer_type`, `_xla_megascale_target`.  A target names devices,
by their number in the slice, where groups in a slice name places in its program: the two differ wherever devices were
put in another order.
"""

import re
from collections.abc import Iterable

from compare.hlo.devices.groups import SLICE_UNIT, DeviceNumbering, Groups, read_pairs, spread_ids
from compare.hlo.text.attributes import read_map
from compare.hlo.text.errors import MOST_DEVICES, HloError
from compare.hlo.text.instruction import Instruction

KINDS = {
    "ONE_TO_ONE": "collective-permute",
    "ALL_REDUCE": "all-reduce",
    "ALL_GATHER": "all-gather",
    "REDUCE_SCATTER": "reduce-scatter",
    "ALL_TO_ALL": "all-to-all",
    "BROADCAST": "collective-broadcast",
}
REDUCERS = {"SUM": "add", "MAX": "maximum", "MIN": "minimum", "PRODUCT": "multiply"}
# Of a gather: `_xla_megascale_target="{1,2}x{0:7}"`, slices 1 and 2 times devices 0 to 7; of a permute a list:
#   _xla_megascale_target={{100000->200000},{200000->100000},…}
_PRODUCT = re.compile(r"\{([\d,\s]+)\}x\{([\d,:\s]+)\}")
_LIST = re.compile(r"\{(\d+(?:(?:,\d+)*|->\d+))\}")
_WORD = re.compile(r"[0-9]{1,12}")
PAIR = 2
_PAIRS = "_xla_send_recv_source_target_pairs"


def is_wire(item: Instruction) -> bool:
    """True for a send or receive between devices, false for one to the host."""
    # A transfer between slices goes through the hosts, and is marked as if it went to one:
    #   send(…), is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime",…
    marks = ("_xla_megascale_transfer_type", _PAIRS)
    return any(mark in item.text for mark in marks) or "is_host_transfer=true" not in item.text


def kind_of(item: Instruction) -> str:
    attributes = _attributes(item)
    if _PAIRS in attributes:
        return "collective-permute"
    word = attributes.get("_xla_megascale_transfer_type", "")
    if word not in KINDS:
        raise item.error(f"unknown megascale transfer type {word!r}; known are {', '.join(KINDS)}")
    return KINDS[word]


def reducer_of(item: Instruction) -> str:
    """How a sum between slices joins its parts, as HLO spells it; empty where it reduces nothing, or unknown."""
    return REDUCERS.get(_attributes(item).get("_xla_megascale_reduce_operation", "").strip('"'), "")


def is_megascale(item: Instruction) -> bool:
    return item.opcode in ("send", "recv") and "_xla_megascale_transfer_type" in item.text


def rendezvous(item: Instruction) -> str:
    """The rendezvous name that a send and its receive share."""
    attributes = _attributes(item)
    return attributes.get("_xla_host_transfer_rendezvous") or attributes.get(_PAIRS) or ""


def pair_transfers(items: Iterable[Instruction]) -> dict[Instruction, Instruction]:
    """Send -> its receive, paired in text order among those of one rendezvous."""
    waiting: dict[tuple[str, str], list[Instruction]] = {}
    wires = [item for item in items if item.opcode in ("send", "recv") and is_wire(item)]
    for item in wires:
        if item.opcode == "recv":
            waiting.setdefault((item.computation.name, rendezvous(item)), []).append(item)
    receives_by_send: dict[Instruction, Instruction] = {}
    for item in wires:
        if item.opcode == "send":
            receives = waiting.get((item.computation.name, rendezvous(item)))
            if not receives:
                raise item.error("a send whose receive is not in its computation")
            receives_by_send[item] = receives.pop(0)
    for left in waiting.values():
        if left:
            raise left[0].error("a receive whose send is not in its computation")
    return receives_by_send


def groups_of(item: Instruction, program: DeviceNumbering) -> Groups:
    """Its groups, of a permute its pairs, as ids of devices of the mesh."""
    attributes = _attributes(item)
    if _PAIRS in attributes:
        return program.repeat_in_slices(spread_ids(_pairs(item), item, "collective-permute", program))
    text = attributes.get("_xla_megascale_target", "")
    groups = _target_groups(text, item, program)
    if kind_of(item) == "collective-permute" and any(len(row) != PAIR for row in groups):
        raise item.error(f"a megascale target of pairs has a row that is none: {text!r}")
    return groups


def _target_groups(text: str, item: Instruction, program: DeviceNumbering) -> Groups:
    if match := _PRODUCT.fullmatch(text):
        slices, numbers = _range(match[1], item), _range(match[2], item)
        return tuple(tuple(_device(at, number, item, program) for at in slices) for number in numbers)
    rows = _LIST.findall(text)
    if not rows or "{" + ",".join("{" + row + "}" for row in rows) + "}" != text.replace(" ", ""):
        raise item.error(f"unknown spelling of a megascale target: {text!r}")
    ids = [[_number(word, item) for word in re.split(",|->", row)] for row in rows]
    return tuple(
        tuple(_device(device_id // SLICE_UNIT, device_id % SLICE_UNIT, item, program) for device_id in row)
        for row in ids
    )


def largest_id(item: Instruction) -> int:
    """The largest id in the pairs of a send or receive; 0 where it has none."""
    return max((device for pair in _pairs(item) for device in pair), default=0)


def _pairs(item: Instruction) -> Groups:
    try:
        return read_pairs(_attributes(item).get(_PAIRS, "{}"))
    except HloError as error:
        raise item.error(str(error)) from None


def _attributes(item: Instruction) -> dict[str, str]:
    return read_map(item.attributes.get("frontend_attributes", "{}"))


def _range(text: str, item: Instruction) -> list[int]:
    """`0:3,7` is 0, 1, 2, 3, 7."""
    numbers: list[int] = []
    for part in text.split(","):
        low, _, high = part.strip().partition(":")
        first, last = _number(low or "0", item), _number(high or low or "0", item)
        if last > MOST_DEVICES or len(numbers) > MOST_DEVICES:
            raise item.error(f"its target names device {last}, and {MOST_DEVICES} devices are the most")
        numbers += range(first, last + 1)
    if not numbers or len(set(numbers)) < len(numbers):
        raise item.error(f"its target names no device, or one twice: {text[:80]!r}")
    return numbers


def _number(word: str, item: Instruction) -> int:
    if not _WORD.fullmatch(word.strip()):
        raise item.error(f"its target names device {word[:40]!r}, which is no number of one")
    return int(word)


def _device(from_one: int, number: int, item: Instruction, program: DeviceNumbering) -> int:
    """Slices count from 1, devices of a slice from 0."""
    device = program.device_in_slice(from_one - 1, number)
    if device is None:
        raise item.error(
            f"its target names device {number} of slice {from_one}; "
            f"the axes make {program.slices} slices of {program.in_slice} devices"
        )
    return device


def count_slices(item: Instruction) -> int:
    """The largest slice number in its target; 1 for an instruction that is no megascale transfer."""
    if not is_megascale(item):
        return 1
    text = _attributes(item).get("_xla_megascale_target", "")
    if match := _PRODUCT.fullmatch(text):
        return max(1, *_range(match[1], item))
    named = max((_number(word, item) // SLICE_UNIT for word in re.findall(r"\d+", text)), default=1)
    if named > MOST_DEVICES:
        raise item.error(f"its target names slice {named}, and {MOST_DEVICES} devices are the most")
    return max(1, named)
