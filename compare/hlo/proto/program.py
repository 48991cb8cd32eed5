"""A serialized program, as profiles and compilers carry it (`HloProto`), as XLA's own text of it.

XLA reads and prints it, in a process of its own, since it ends its process on some damaged modules.  What its text
lacks is added: how many replicas and partitions the module was compiled for.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from google.protobuf.message import DecodeError

from compare.hlo.proto.messages import Message, classes
from compare.hlo.text.errors import HloError

MOST_BYTES = 1 << 26
"""Of a serialized module, so that reading takes no more than 2 GiB."""

_MESSAGES = classes(
    "wirediff.hlo",
    {
        "HloProto": "hlo_module=1:bytes",
        "Module": "computations=3*Computation device_assignment=15:DeviceAssignment",
        "Computation": "instructions=2*Instruction",
        "Instruction": "collective_device_list=87:DeviceList iota_collective_device_list=92:Iota",
        "DeviceList": "iota_replica_group_list=2:Iota",
        "Iota": "num_replica_groups=1:int64",
        "DeviceAssignment": "replica_count=1:int32 computation_count=2:int32 computation_devices=3*ReplicaDevices",
        "ReplicaDevices": "replica_device_ids=1*int64",
    },
)
"""Names and numbers of fields are those of xla/service/hlo.proto and xla_data.proto; others are kept as they are."""

_PRINTER = """
import sys
from jaxlib import _hlo
while head := sys.stdin.buffer.read(8):
    data = sys.stdin.buffer.read(int.from_bytes(head))
    try:
        word, text = b"1", _hlo.HloModule.from_serialized_hlo_module_proto(data).to_string()
    except Exception as error:
        word, text = b"0", str(error)
    said = text.encode(errors="replace")
    sys.stdout.buffer.write(word + len(said).to_bytes(8) + said)
    sys.stdout.buffer.flush()
"""
_printers: dict[int, subprocess.Popen[bytes]] = {}
"""The process that prints, once there is one, by the process that started it."""


def write_hlo_text(data: bytes) -> str:
    """HLO text of a serialized `HloProto` or `HloModuleProto`.

    `HloError`, one line, where jaxlib is not installed, or XLA cannot read the bytes.
    """
    if len(data) > MOST_BYTES:
        raise HloError(
            f"the serialized HLO module of {len(data):,} bytes is too large; at most {MOST_BYTES:,} are read"
        )
    with _decoding(data):
        module: Message = _MESSAGES["Module"].FromString(_module_bytes(data))
    assignment = module.device_assignment
    text = _print(_with_groups_where_xla_reads_them(module))
    head, newline, rest = text.partition("\n")
    counts = ("replica_count", assignment.replica_count), ("num_partitions", assignment.computation_count)
    more = (f", {key}={count}" for key, count in counts if count > 1 and f" {key}=" not in head)
    return f"{head}{''.join(more)}{newline}{rest}"


def prepare() -> None:
    """Start the process that reads, so that the first module does not wait until XLA is loaded."""
    if find_spec("jaxlib") is not None and os.getpid() not in _printers:
        _start()


def is_hlo_module(data: bytes) -> bool:
    """Whether the bytes are a serialized `HloProto` or `HloModuleProto`."""
    try:
        return bool(_module_bytes(data))
    except (DecodeError, HloError):
        return False


def read_device_assignment(data: bytes) -> tuple[int, ...]:
    """The id that the runtime gives to each device of the program, in the order of the program's own ids.

    Empty where the module does not say; else as long as replicas times partitions (of one slice).
    """
    with _decoding(data):
        module: Message = _MESSAGES["Module"].FromString(_module_bytes(data))
        columns = [each.replica_device_ids for each in module.device_assignment.computation_devices]
        if len({len(column) for column in columns}) > 1:
            raise HloError("the device assignment of the serialized module is not whole; is it cut?")
        return tuple(device for replica in zip(*columns, strict=True) for device in replica)


@contextmanager
def _decoding(data: bytes) -> Iterator[None]:
    try:
        yield
    except DecodeError:
        raise HloError(
            f"a binary file that is no serialized HLO module: {len(data):,} bytes that protobuf cannot read; is it cut?"
        ) from None


def _module_bytes(data: bytes) -> bytes:
    """The module itself, alone or within an `HloProto`, whose first field it is; in a module that is its name."""
    if not data:
        raise HloError("the serialized HLO module is empty")
    inner: bytes = _MESSAGES["HloProto"].FromString(data).hlo_module
    for candidate in (inner, data):
        try:
            if _MESSAGES["Module"].FromString(candidate).computations:
                return candidate
        except DecodeError:
            if candidate is data:
                raise
    raise HloError(
        f"not a serialized HLO module: {len(data):,} bytes without a computation; a profile is read by python -m "
        "compare.trace"
    )


def _with_groups_where_xla_reads_them(module: Message) -> bytes:
    """The module; groups that are a grid of devices stand in a field of their own.

    The XLA of torch_xla 2.9 wrote them into the list of groups.  A later one passes over that, and prints `{}`: all
    devices.
    """
    for computation in module.computations:
        for item in computation.instructions:
            older = item.collective_device_list
            if older.HasField("iota_replica_group_list") and not item.HasField("iota_collective_device_list"):
                item.iota_collective_device_list.CopyFrom(older.iota_replica_group_list)
                item.ClearField("collective_device_list")
    data: bytes = module.SerializeToString()
    return data


def _print(data: bytes) -> str:
    """XLA's text of a module."""
    if find_spec("jaxlib") is None:
        raise HloError(
            "a serialized HLO module is read by XLA itself; get it with pip install jaxlib, or give HLO text"
        )
    printer = _printers.get(os.getpid()) or _start()
    assert printer.stdin is not None
    assert printer.stdout is not None
    try:
        printer.stdin.write(len(data).to_bytes(8) + data)
        printer.stdin.flush()
        head = printer.stdout.read(9)
        said = printer.stdout.read(int.from_bytes(head[1:])).decode(errors="replace")
    except BrokenPipeError:
        head = b""
    if len(head) < 9:
        _close()
        raise HloError(f"XLA gives up at the serialized HLO module of {len(data):,} bytes; is it cut or damaged?")
    if head[:1] == b"0":
        raise HloError(f"XLA cannot read the serialized HLO module of {len(data):,} bytes: {said}")
    return said


def _start() -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", _PRINTER]
    printer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return _printers.setdefault(os.getpid(), printer)


@atexit.register
def _close() -> None:
    """End the printer, if there is one; the next module starts another."""
    if printer := _printers.pop(os.getpid(), None):
        printer.kill()
        printer.communicate()
