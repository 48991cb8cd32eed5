"""A serialized program, as profiles carry it, written out as HLO text that `text.module.read` understands.

The text leads to the same rows as XLA's own of the same module: instructions in the schedule's order, asynchronous
wrappers of one instruction folded into `…-start` and `…-done`, long literals elided.

Why text, and no module of its own: every check of completeness, every line number of a row and of an error, and the
reading of shapes, groups and attributes then are those of text, once.  Writing takes 0.14 to 0.21 s for the unrolled
32 layers of an 8B model (17,000 to 22,000 instructions, 3 MB), reading that text 0.01 s more than its rows take anyway
(measured on two busy cores); a program of a profile is read once.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from google.protobuf.message import DecodeError

from compare.hlo.proto.attributes import (
    brace,
    called_text,
    frontend_text,
    metadata_text,
    numbers,
    opcode_attributes,
    quote,
)
from compare.hlo.proto.hlo_messages import ASSIGNMENT_MESSAGES, CENSUS, MESSAGES
from compare.hlo.proto.messages import Message, MessageClass
from compare.hlo.proto.shapes import literal_text, shape_text
from compare.hlo.text.errors import HloError

_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
_OPCODE = re.compile(r"[a-z][a-z0-9_\-]*")
MOST_BYTES, MOST_PARTS = 1 << 26, 1 << 22
"""Of a serialized module, so that reading takes no more than 2 GiB."""
_ALIAS_KINDS = {1: "may-alias", 2: "must-alias"}


def write_hlo_text(data: bytes) -> str:
    """HLO text of a serialized `HloProto` or `HloModuleProto`.

    `HloError`, one line, where the bytes are cut, something else, or name what is not there.
    """
    fits = len(data) <= MOST_BYTES and all(
        CENSUS.is_within(data, root, most=MOST_PARTS) for root in ("HloProto", "Module")
    )
    if not fits:
        raise HloError(
            f"the serialized HLO module of {len(data):,} bytes is too large; at most {MOST_BYTES:,} of {MOST_PARTS:,} "
            "parts are read"
        )
    with _decoding(data):
        return _Printer(_module(data, MESSAGES)).text()


def read_device_assignment(data: bytes) -> tuple[int, ...]:
    """The id that the runtime gives to each device of the program, in the order of the program's own ids.

    Empty where the module does not say; else as long as replicas times partitions (of one slice).
    """
    with _decoding(data):
        columns = [
            replica_devices.replica_device_ids
            for replica_devices in _module(data, ASSIGNMENT_MESSAGES).device_assignment.computation_devices
        ]
        if len({len(column) for column in columns}) > 1:
            raise HloError("the device assignment of the serialized module is not whole; is it cut?")
        return tuple(device for replica in zip(*columns, strict=True) for device in replica)


@contextmanager
def _decoding(data: bytes) -> Iterator[None]:
    try:
        yield
    except DecodeError:
        raise HloError(f"not a serialized HLO module, or cut: {len(data)} bytes that protobuf cannot read") from None


def _module(data: bytes, messages: Mapping[str, MessageClass]) -> Message:
    """The module itself, alone or within an `HloProto`, whose first field it is; in a module that is its name."""
    if not data:
        raise HloError("the serialized HLO module is empty")
    module: Message
    try:
        module = messages["HloProto"].FromString(data).hlo_module
    except DecodeError:
        module = messages["Module"].FromString(data)
    if not module.computations:
        module = messages["Module"].FromString(data)
    if not module.computations:
        raise HloError(f"not a serialized HLO module: {len(data)} bytes without a computation")
    return module


class _Printer:
    """One module on its way to text."""

    def __init__(self, module: Message):
        self._module = module
        self._computations = {computation.id: computation for computation in module.computations}
        if len(self._computations) < len(module.computations):
            raise HloError("two computations of the serialized module have one id; is it damaged?")
        names = {_checked(computation.name, "computation") for computation in module.computations}
        if len(names) < len(module.computations):
            raise HloError("two computations of the serialized module have one name; is it damaged?")
        # Where the number is cut off it reads 0, which is some other computation's.
        entry = self._computations.get(module.entry_computation_id)
        if entry is None or entry.name != (module.entry_computation_name or entry.name):
            raise HloError("the entry computation is not in the serialized module; is it cut?")
        self._order = {entry.key: entry.value.instruction_ids for entry in module.schedule.sequences}
        # A program has few different shapes and places in the source: each is spelled once.
        self._shape: Callable[[bytes], str] = cache(lambda data: shape_text(MESSAGES["Shape"].FromString(data)))
        self._metadata = cache(metadata_text)
        self._frontend = cache(frontend_text)
        self._config = cache(_config_text)
        self._wrapped = self._wrapped_alone()

    def _wrapped_alone(self) -> dict[int, Message | None]:
        """For each computation that asynchronous wrappers call its one instruction, None where it has more."""
        items = (item for computation in self._module.computations for item in computation.instructions)
        called = {id_ for item in items if item.opcode == "async-start" for id_ in item.called_computation_ids}
        return {id_: _only_instruction(computation) for id_, computation in self._computations.items() if id_ in called}

    def text(self) -> str:
        parts = [self._header(), *_frames(self._module.stack_frame_index)]
        for computation in self._module.computations:
            if self._wrapped.get(computation.id) is None:
                parts.append("\n".join(self._computation(computation)))
        return "\n\n".join(parts) + "\n"

    def _header(self) -> str:
        module = self._module
        # The name is a label; what would end it early is taken out.
        words = ["HloModule " + re.sub(r"[\s,]", "_", module.name)]
        if module.schedule.sequences:
            words.append("is_scheduled=true")
        if aliases := ", ".join(map(_alias, module.input_output_alias.entries)):
            words.append(f"input_output_alias={{ {aliases} }}")
        for key, count in (
            ("replica_count", module.device_assignment.replica_count),
            ("num_partitions", module.device_assignment.computation_count),
        ):
            if count > 1:
                words.append(f"{key}={count}")
        return ", ".join(words)

    def _computation(self, computation: Message) -> Iterator[str]:
        items = {item.id: item for item in computation.instructions}
        if computation.root_id not in items:
            raise HloError(f"the root of computation {computation.name!r} is not in the serialized module; is it cut?")
        order = self._order.get(computation.id, items)
        if len(order) != len(computation.instructions) or not all(id_ in items for id_ in order):
            raise HloError(f"the schedule of computation {computation.name!r} names other instructions than it has")
        yield f"{'ENTRY ' if computation.id == self._module.entry_computation_id else ''}%{computation.name} {{"
        for id_ in order:
            yield ("  ROOT %" if id_ == computation.root_id else "  %") + self._instruction(items[id_], items)
        thread = computation.execution_thread
        yield f"}}, execution_thread={quote(thread)}" if thread and thread != "main" else "}"

    def _instruction(self, item: Message, items: dict[int, Message]) -> str:
        name, opcode = _checked(item.name, "instruction"), item.opcode
        if not _OPCODE.fullmatch(opcode):
            raise HloError(f"cannot read the opcode {opcode!r} of instruction {name!r} in the serialized module")
        operands = [self._operand(id_, item, items) for id_ in item.operand_ids]
        first = operands[0] if operands else None
        if opcode == "parameter":
            inside = str(item.parameter_number)
        elif opcode == "constant":
            inside = literal_text(item.literal)
        else:
            inside = ", ".join(f"%{operand.name}" for operand in operands)
        attributes = list(opcode_attributes(item, first=first))
        wrapped = self._wrapped_by(item, items) if opcode.startswith("async-") else None
        if wrapped is not None:
            opcode = wrapped.opcode + opcode.removeprefix("async")
        if wrapped is not None and item.opcode == "async-start":
            attributes += [*opcode_attributes(wrapped, first=first), self._called(wrapped, first)]
            attributes.append(self._frontend(wrapped.frontend_attributes))
        else:
            attributes.append(self._called(item, first) if item.called_computation_ids else "")
        attributes += [self._frontend(item.frontend_attributes), self._metadata(item.metadata), self._backend(item)]
        head = f"{name} = {self._shape(item.shape)} {opcode}({inside})"
        return ", ".join([head, *filter(None, attributes)])

    def _operand(self, id_: int, item: Message, items: dict[int, Message]) -> Message:
        if id_ not in items:
            raise HloError(f"an operand of instruction {item.name!r} is not in its computation; is the module cut?")
        return items[id_]

    def _wrapped_by(self, item: Message, items: dict[int, Message]) -> Message | None:
        """The instruction that an asynchronous one stands for, where its wrapper holds nothing else."""
        seen: set[int] = set()
        while item.opcode != "async-start" and item.operand_ids and item.id not in seen:
            seen.add(item.id)
            item = self._operand(item.operand_ids[0], item, items)
        called = item.called_computation_ids if item.opcode == "async-start" else ()
        return self._wrapped.get(called[0]) if called else None

    def _called(self, item: Message, first: Message | None) -> str:
        missing = [id_ for id_ in item.called_computation_ids if id_ not in self._computations]
        if missing:
            raise HloError(f"a computation that {item.name!r} calls is not in the serialized module; is it cut?")
        return called_text(item, [self._computations[id_].name for id_ in item.called_computation_ids], first=first)

    def _backend(self, item: Message) -> str:
        payload = item.backend_config_payload
        source = payload.WhichOneof("source")
        if source is None:
            return self._config(item.backend_config)
        if source == "value":
            return self._config(payload.value)
        if not 0 <= payload.id < len(self._module.payloads):
            raise HloError(f"the backend_config of {item.name!r} is not in the serialized module; is it cut?")
        return self._config(self._module.payloads[payload.id])


def _only_instruction(computation: Message) -> Message | None:
    """The root of a computation that has, beside parameters, nothing else; else None."""
    others = [item for item in computation.instructions if item.id != computation.root_id]
    if any(item.opcode != "parameter" for item in others) or len(others) == len(computation.instructions):
        return None
    root: Message = next(item for item in computation.instructions if item.id == computation.root_id)
    return root


def _checked(name: str, what: str) -> str:
    if not _NAME.fullmatch(name):
        raise HloError(f"cannot read the {what} name {name!r} in the serialized module")
    return name


def _alias(entry: Message) -> str:
    if entry.kind not in _ALIAS_KINDS:
        raise HloError(f"unknown kind {entry.kind} of input_output_alias; a newer XLA wrote it")
    places = numbers(entry.parameter_shape_index)
    return f"{numbers(entry.output_shape_index)}: ({entry.parameter_number}, {places}, {_ALIAS_KINDS[entry.kind]})"


def _frames(index: Message) -> Iterator[str]:
    """The tables that `stack_frame_id` points into.  Of a frame's parent XLA writes the number plus one."""
    if not index.stack_frames:
        return
    yield _table("FileNames", [quote(name) for name in index.file_names])
    yield _table("FunctionNames", [quote(name) for name in index.function_names])
    places = index.file_locations
    words = [
        f"{{file_name_id={at.file_name_id} function_name_id={at.function_name_id} line={at.line}}}" for at in places
    ]
    yield _table("FileLocations", words)
    frames = index.stack_frames
    yield _table(
        "StackFrames",
        [f"{{file_location_id={at.file_location_id} parent_frame_id={at.parent_frame_id + 1}}}" for at in frames],
    )


def _table(title: str, rows: list[str]) -> str:
    return "\n".join([title, *(f"{number} {row}" for number, row in enumerate(rows, 1))])


def _config_text(config: bytes) -> str:
    if not config:
        return ""
    words = config.decode(errors="replace")
    plain = brace(words) and "\ufffd" not in words
    return f"backend_config={words if plain else quote(config)}"
