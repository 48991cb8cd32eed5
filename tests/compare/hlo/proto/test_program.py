"""Serialized programs as text: the rows are those of the text that XLA wrote of the same module."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.proto import program as proto
from compare.hlo.proto.messages import classes
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read
from tests.compare.hlo.corpus_programs import NAMES, load

COMPARED = [name for name in Collective.__slots__ if name not in ("line", "text")]

SERIALIZE = """
import gzip, sys
from pathlib import Path
from jaxlib import _hlo
out = Path(sys.argv[1])
for path in map(Path, sys.argv[2:]):
    module = _hlo.hlo_module_from_text(gzip.open(path, "rt").read())
    name = path.name.removesuffix(".hlo.gz")
    (out / f"{name}.pb").write_bytes(module.as_serialized_hlo_module_proto())
    (out / f"{name}.hlo").write_text(module.to_string())
"""
"""XLA's parser aborts its process on some text, so it has one of its own."""


def of(text: str, axes: dict[str, int]) -> list[list[object]]:
    return [[getattr(row, name) for name in COMPARED] for row in collectives(read(text), axes)]


@pytest.fixture(scope="module")
def serialized(tmp_path_factory) -> Path:
    pytest.importorskip("jaxlib._hlo")
    out = tmp_path_factory.mktemp("serialized")
    paths = [str(load(name).path) for name in NAMES]
    subprocess.run([sys.executable, "-c", SERIALIZE, str(out), *paths], check=True, timeout=120)
    return out


def varint(number: int) -> bytes:
    more = number >> 7
    return bytes([number & 127 | 128]) + varint(more) if more else bytes([number])


def assign(replicas: int, partitions: int) -> bytes:
    """Field 15 of a module, which text does not have: a device assignment of so many replicas and partitions."""
    made = b"\x08" + varint(replicas) + b"\x10" + varint(partitions)
    for partition in range(partitions):
        ids = b"".join(b"\x08" + varint(replica * partitions + partition) for replica in range(replicas))
        made += b"\x1a" + varint(len(ids)) + ids
    return b"\x7a" + varint(len(made)) + made


@pytest.mark.parametrize("program", NAMES)
def test_the_rows_are_those_of_xla_own_text(program, serialized):
    axes = load(program).axes
    text = (serialized / f"{program}.hlo").read_text()
    module = read(text)
    data = (serialized / f"{program}.pb").read_bytes()
    if module.num_devices:
        data += assign(module.replica_count, module.num_partitions)
    assert of(proto.write_hlo_text(data), axes) == of(text, axes)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    pytest.importorskip("jax")
    out = tmp_path_factory.mktemp("compiled")
    quiet = {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_ACCELERATOR_TYPE": "v5litepod-8",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("toy_proto.py")), str(out)],
        check=True,
        timeout=200,
        env={**os.environ, **quiet},
    )
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("program", "devices"), [("cpu", [0, 1, 2, 3, 4, 5, 6, 7]), ("tpu", [0, 2, 4, 6, 7, 5, 3, 1])])
def test_what_a_compiler_serialized_says_what_its_text_says(program, devices, compiled):
    data, text = (compiled / f"{program}.pb").read_bytes(), (compiled / f"{program}.hlo").read_text()
    found = proto.write_hlo_text(data)
    axes = {"dp": 2, "tp": 4}
    assert of(found, axes) == of(text, axes)
    assert of(found, {})
    module, theirs = read(found), read(text)
    assert (module.num_devices, module.aliased_parameters) == (8, theirs.aliased_parameters)
    assert module.header["is_scheduled"] == "true"
    assert proto.write_hlo_text(b"\x0a" + varint(len(data)) + data) == found  # an HloProto: the module is its field 1
    tpu = [0, 1, 2, 3, 4, 5, 6, 7]
    assert sorted(proto.read_device_assignment(data)) == tpu
    assert list(proto.read_device_assignment(data)) == devices


OLDER = classes(
    "older",
    {
        "Module": "computations=3*Computation",
        "Computation": "instructions=2*Instruction",
        "Instruction": "opcode=2:string collective_device_list=87:DeviceList iota_collective_device_list=92:Iota",
        "DeviceList": "iota_replica_group_list=2:Iota",
        "Iota": "num_replica_groups=1:int64",
    },
)
GRID = """HloModule m, num_partitions=8

ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[8] all-gather(x), channel_id=1, dimensions={0}, use_global_device_ids=true, \
replica_groups=[4,2]<=[2,4]T(1,0)
}
"""


def test_groups_stand_where_torch_xla_2_9_wrote_them(tmp_path):
    """Its XLA had the grid within the list of groups, field 87; later ones read it from field 92."""
    pytest.importorskip("jaxlib._hlo")
    path = tmp_path / "grid.hlo.gz"
    path.write_bytes(gzip.compress(GRID.encode()))
    subprocess.run([sys.executable, "-c", SERIALIZE, str(tmp_path), str(path)], check=True, timeout=120)
    data = (tmp_path / "grid.pb").read_bytes()
    module = OLDER["Module"].FromString(data)
    (item,) = [item for item in module.computations[0].instructions if item.opcode == "all-gather"]
    item.collective_device_list.iota_replica_group_list.CopyFrom(item.iota_collective_device_list)
    item.ClearField("iota_collective_device_list")
    for written in (data, module.SerializeToString()):
        (line,) = [line for line in proto.write_hlo_text(written).splitlines() if "all-gather(" in line]
        assert "replica_groups=[4,2]<=[2,4]T(1,0)" in line


def test_a_module_of_several_replicas_says_so_where_xla_does_not(serialized):
    data = (serialized / "scan3.pb").read_bytes()
    assert read(proto.write_hlo_text(data + assign(2, 4))).num_devices == 8
    assert "replica_count=2, num_partitions=4" in proto.write_hlo_text(data + assign(2, 4)).splitlines()[0]


@pytest.mark.parametrize(
    "data", [b"", b"HloModule m\n", b"\x00" * 40, b'{"a": 1}', gzip.compress(b"x" * 99, mtime=0), b"\x0a\x02hi"]
)
def test_foreign_bytes_are_refused_in_one_line(data):
    with pytest.raises(HloError) as refused:
        proto.write_hlo_text(data)
    assert "\n" not in str(refused.value)


def test_wherever_it_is_cut_it_is_refused(serialized):
    """Behind its computations a module may end anywhere: all of it is optional there."""
    data = (serialized / "scan3.pb").read_bytes()
    end = data.rindex(b"parameter")
    for at in range(0, end, 97):
        with pytest.raises(HloError) as refused:
            proto.write_hlo_text(data[:at])
        assert "\n" not in str(refused.value)


ABORTS = """
import os, sys
sys.stdin.buffer.read(8)
os.abort()
"""


def test_a_module_that_ends_xla_s_process_is_refused_and_the_next_is_read(serialized, monkeypatch):
    data = (serialized / "scan3.pb").read_bytes()
    whole = proto.write_hlo_text(data)
    proto._close()
    with monkeypatch.context() as changed:
        changed.setattr(proto, "_PRINTER", ABORTS)
        with pytest.raises(HloError, match=f"XLA gives up at the serialized HLO module of {len(data):,} bytes"):
            proto.write_hlo_text(data)
    assert proto.write_hlo_text(data) == whole


def test_without_jaxlib_it_is_said_what_to_install(serialized, monkeypatch):
    monkeypatch.setattr(proto, "find_spec", lambda _: None)
    with pytest.raises(HloError, match="pip install jaxlib"):
        proto.write_hlo_text((serialized / "scan3.pb").read_bytes())
