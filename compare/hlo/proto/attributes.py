"""The attributes of an instruction of a serialized program, in the spelling of HLO text.

Printed is what this project reads.  Left out are shardings, precisions, the dims of matmuls, convolutions, gathers and
scatters, and control predecessors.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from compare.hlo.proto.hlo_messages import ELEMENT_TYPES, MESSAGES
from compare.hlo.proto.messages import Message
from compare.hlo.text.errors import HloError

_GROUPED = {
    "all-reduce", "all-reduce-start", "all-gather", "all-gather-start", "reduce-scatter", "all-to-all",
    "ragged-all-to-all", "collective-broadcast",
}  # fmt: skip
"""Without any groups they are of all devices, which is written `{}`."""

_TO_APPLY = {
    "call", "map", "reduce", "reduce-window", "reduce-scatter", "all-reduce", "all-reduce-start", "scatter", "sort",
    "topk", "scan",
}  # fmt: skip
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def quote(text: str | bytes) -> str:
    """As XLA quotes: what is not plain ASCII becomes octal bytes."""
    data = text.encode() if isinstance(text, str) else text
    plain = (_ESCAPES.get(chr(byte)) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)
    return '"' + "".join(plain) + '"'


def brace(text: str) -> bool:
    """Whether a value may stand without quotes: one pair of braces around all of it, on one line."""
    if not text.startswith("{") or not text.endswith("}") or "\n" in text:
        return False
    depth, last = 0, 0
    for piece in _PIECE.finditer(text):
        depth += {"{": 1, "}": -1}.get(piece[0], 0)
        last = piece.end()
        if depth == 0:
            break
    return depth == 0 and last == len(text)


def numbers(values: Iterable[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def opcode_attributes(item: Message, *, first: Message | None) -> Iterator[str]:
    """The attributes of the fields that belong to its opcode.  first: its first operand, None without one."""
    opcode = item.opcode
    if item.channel_id:
        yield f"channel_id={item.channel_id}"
    groups = groups_text(item)
    if groups is not None:
        yield f"replica_groups={groups}"
    if item.source_target_pairs or (opcode.startswith("collective-permute") and not opcode.endswith("-done")):
        pairs = ",".join(f"{{{pair.source},{pair.target}}}" for pair in item.source_target_pairs)
        yield f"source_target_pairs={{{pairs}}}"
    if item.use_global_device_ids:
        yield "use_global_device_ids=true"
    if opcode == "iota":
        yield f"iota_dimension={item.dimensions[0] if item.dimensions else 0}"
    elif item.dimensions or opcode == "broadcast":
        yield f"dimensions={numbers(item.dimensions)}"
    if opcode == "get-tuple-element":
        yield f"index={item.tuple_index}"
    if item.dynamic_slice_sizes:
        yield _sizes(item, first)
    for name, spell in _SPELLED.items():
        if getattr(item, name):
            yield spell(item)
    if item.is_host_transfer:
        yield "is_host_transfer=true"


def _slices(cuts: Sequence[Message]) -> str:
    strided = any(cut.stride != 1 for cut in cuts)
    return ", ".join(f"[{cut.start}:{cut.limit}" + (f":{cut.stride}]" if strided else "]") for cut in cuts)


def _padding(dimensions: Sequence[Message]) -> str:
    inner = any(dim.interior_padding for dim in dimensions)
    words = (
        f"{dim.edge_padding_low}_{dim.edge_padding_high}" + (f"_{dim.interior_padding}" if inner else "")
        for dim in dimensions
    )
    return "x".join(words)


def _spell_padding(item: Message) -> str:
    dimensions = item.padding_config.dimensions
    return f"padding={_padding(dimensions)}" if dimensions else ""


_SPELLED: dict[str, Callable[[Message], str]] = {
    "slice_dimensions": lambda item: f"slice={{{_slices(item.slice_dimensions)}}}",
    "padding_config": _spell_padding,
    "comparison_direction": lambda item: f"direction={item.comparison_direction}",
    "fusion_kind": lambda item: f"kind={item.fusion_kind}",
    "custom_call_target": lambda item: f"custom_call_target={quote(item.custom_call_target)}",
    "async_execution_thread": lambda item: f"async_execution_thread={quote(item.async_execution_thread)}",
}
"""Fields that are written wherever they are not empty."""


def _sizes(item: Message, first: Message | None) -> str:
    """Of a permute in place, the sizes of all its windows are in one list, as many each as its operand has dims."""
    sizes = list(item.dynamic_slice_sizes)
    if not item.opcode.startswith("collective-permute"):
        return f"dynamic_slice_sizes={numbers(sizes)}"
    shape = _shape_of(first)
    rank = len((shape.tuple_shapes[0] if shape.tuple_shapes else shape).dimensions)
    if rank < 1 or len(sizes) % rank:
        raise HloError(f"{item.name}: {len(sizes)} sizes of windows for an operand of {rank} dims")
    windows = (numbers(sizes[at : at + rank]) for at in range(0, len(sizes), rank))
    return "slice_sizes={" + ",".join(windows) + "}"


def _shape_of(item: Message | None) -> Message:
    return MESSAGES["Shape"].FromString(b"" if item is None else item.shape)


def groups_text(item: Message) -> str | None:
    """The device groups in any of XLA's spellings; None for what has none."""
    if item.HasField("mesh_axes_replica_group_list"):
        return _mesh(item.mesh_axes_replica_group_list)
    if item.HasField("iota_collective_device_list"):
        return _iota(item.iota_collective_device_list)
    listed = item.collective_device_list
    if listed.HasField("iota_replica_group_list"):
        return _iota(listed.iota_replica_group_list)
    groups = listed.replica_groups or item.replica_groups
    if not groups and item.opcode not in _GROUPED:
        return None
    return "{" + ",".join(numbers(group.replica_ids) for group in groups) + "}"


def _iota(listed: Message) -> str:
    turn = list(listed.iota_transpose_perm)
    dims = f"[{','.join(map(str, listed.iota_reshape_dims))}]"
    plain = f"[{listed.num_replica_groups},{listed.num_devices_per_group}]<={dims}"
    return plain if turn == sorted(turn) else f"{plain}T({','.join(map(str, turn))})"


def _mesh(listed: Message) -> str:
    mesh = listed.mesh
    axes = ",".join(f"'{axis.name}'={axis.size}" for axis in mesh.axes)
    ids = ""
    if mesh.device_ids:
        ids = f", device_ids=({','.join(map(str, mesh.device_ids))})"
    elif mesh.HasField("iota_transform"):
        dims, turn = mesh.iota_transform.reshape_dims, mesh.iota_transform.transpose_perm
        ids = f", device_ids=([{','.join(map(str, dims))}]T({','.join(map(str, turn))}))"
    refs = []
    for ref in listed.axes:
        if not 0 <= ref.mesh_axis_index < len(mesh.axes):
            raise HloError(f"device groups along axis {ref.mesh_axis_index} of a mesh of {len(mesh.axes)}")
        sub = f":({ref.sub_axis_info.pre_size}){ref.sub_axis_info.size}" if ref.HasField("sub_axis_info") else ""
        refs.append(f"'{mesh.axes[ref.mesh_axis_index].name}'{sub}")
    return f"mesh[{axes}]{ids} {{{','.join(refs)}}}"


def called_text(item: Message, names: list[str], *, first: Message | None) -> str:
    """The computations that it calls, under the attribute's name."""
    if not names:
        return ""
    opcode, refs = item.opcode, [f"%{name}" for name in names]
    if opcode == "while" and len(refs) == 2:
        return f"condition={refs[1]}, body={refs[0]}"
    if opcode == "conditional":
        if ELEMENT_TYPES.get(_shape_of(first).element_type) == "pred" and len(refs) == 2:
            return f"true_computation={refs[0]}, false_computation={refs[1]}"
        return f"branch_computations={{{', '.join(refs)}}}"
    if opcode == "select-and-scatter" and len(refs) == 2:
        return f"select={refs[0]}, scatter={refs[1]}"
    if opcode == "custom-call":
        return f"called_computations={{{', '.join(refs)}}}"
    if len(refs) > 1:
        raise HloError(f"{item.name}: {opcode} calls {len(refs)} computations, where one was expected")
    return f"{'to_apply' if opcode in _TO_APPLY else 'calls'}={refs[0]}"


def metadata_text(data: bytes) -> str:
    """`metadata={…}`, or nothing."""
    metadata = MESSAGES["Metadata"].FromString(data)
    words = [
        f"{name}={quote(value)}" for name in ("op_type", "op_name", "source_file") if (value := getattr(metadata, name))
    ]
    words += [f"{name}={value}" for name in ("source_line", "stack_frame_id") if (value := getattr(metadata, name))]
    return f"metadata={{{' '.join(words)}}}" if words else ""


def frontend_text(data: bytes) -> str:
    """`frontend_attributes={…}`, or nothing."""
    entries = sorted((entry.key, entry.value) for entry in MESSAGES["Attributes"].FromString(data).map)
    words = (f"{key}={value if brace(value) else quote(value)}" for key, value in entries)
    inside = ",".join(words)
    return f"frontend_attributes={{{inside}}}" if inside else ""
