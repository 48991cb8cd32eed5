"""Serialized programs written out as text: the rows are those of XLA's own text of the same module."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.proto import program as proto
from compare.hlo.proto.hlo_messages import MESSAGES
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read
from tests.places import CORPUS

PROGRAMS = sorted(path.name.removesuffix(".json") for path in CORPUS.glob("*.json"))
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
    paths = [str(CORPUS / f"{program}.hlo.gz") for program in PROGRAMS]
    subprocess.run([sys.executable, "-c", SERIALIZE, str(out), *paths], check=True, timeout=120)
    return out


def varint(number: int) -> bytes:
    more = number >> 7
    return bytes([number & 127 | 128]) + varint(more) if more else bytes([number])


def assign(replicas: int, partitions: int) -> bytes:
    """Field 15 of a module, which text does not have: a device assignment of so many replicas and partitions."""
    counts = b"\x08" + varint(replicas) + b"\x10" + varint(partitions)
    return b"\x7a" + varint(len(counts)) + counts


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_rows_are_those_of_xla_own_text(program, serialized):
    axes = {name: int(size) for name, size in (axis.split("=") for axis in answers(program).split(","))}
    text = (serialized / f"{program}.hlo").read_text()
    module = read(text)
    data = (serialized / f"{program}.pb").read_bytes()
    if module.num_devices:
        data += assign(module.replica_count, module.num_partitions)
    assert of(proto.write_hlo_text(data), axes) == of(text, axes)


def answers(program: str) -> str:
    return json.loads((CORPUS / f"{program}.json").read_text())["axes"]


@pytest.mark.parametrize("program", PROGRAMS[::5])
def test_every_instruction_stands_where_xla_writes_it(program, serialized):
    theirs = read((serialized / f"{program}.hlo").read_text())
    ours = read(proto.write_hlo_text((serialized / f"{program}.pb").read_bytes()))
    assert set(ours.computations) == set(theirs.computations)
    for name, computation in theirs.computations.items():
        told = [[(i.name, i.opcode, i.shape, i.operands == () or [o.name for o in i.operands], i.op_name) for i in one]
                for one in (ours.computations[name], computation)]  # fmt: skip
        assert told[0] == told[1]
        assert ours.computations[name].root.name == computation.root.name


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    pytest.importorskip("jax")
    out = tmp_path_factory.mktemp("compiled")
    quiet = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
             "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-8",
             "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}  # fmt: skip
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


def program(**changes):
    """`ENTRY main { p = s8[2]{0} parameter(0); ROOT r = s8[2]{0} copy(p) }`, with fields of `r` changed."""
    made = MESSAGES["Module"](name="m", entry_computation_id=1)
    main = made.computations.add(name="main", id=1, root_id=9)
    shape = MESSAGES["Shape"](element_type=2, dimensions=[2])
    shape.layout.minor_to_major.append(0)
    main.instructions.add(name="p", opcode="parameter", id=8, shape=shape.SerializeToString())
    root = {"name": "r", "opcode": "copy", "id": 9, "operand_ids": [8], "shape": shape.SerializeToString()}
    main.instructions.add(**root | changes)
    return made


def line(made) -> str:
    """The root's."""
    (found,) = [one for one in proto.write_hlo_text(made.SerializeToString()).splitlines() if "ROOT" in one]
    return found.strip()


def test_a_small_module_is_written_in_full():
    assert proto.write_hlo_text(program().SerializeToString()) == (
        "HloModule m\n\nENTRY %main {\n  %p = s8[2]{0} parameter(0)\n  ROOT %r = s8[2]{0} copy(%p)\n}\n"
    )


def test_literals_stand_in_the_order_of_the_dims_whatever_the_layout():
    literal = MESSAGES["Literal"](s32s=[1, 4, 2, 5, 3, 6])
    literal.shape.element_type = 4
    literal.shape.dimensions.extend([2, 3])
    literal.shape.layout.minor_to_major.extend([0, 1])  # the first dim moves fastest in memory
    constant = {"opcode": "constant", "operand_ids": [], "literal": literal}
    assert "constant({{1, 2, 3}, {4, 5, 6}})" in line(program(**constant))
    literal.shape.layout.minor_to_major[:] = [1, 0]
    assert "constant({{1, 4, 2}, {5, 3, 6}})" in line(program(**constant))
    small = MESSAGES["Literal"](s16s=b"\xff\xff\x02\x00")
    small.shape.element_type = 3
    small.shape.dimensions.append(2)
    assert "constant({-1, 2})" in line(program(opcode="constant", operand_ids=[], literal=small))
    small.s16s = b"\xff\xff\x02"
    with pytest.raises(HloError, match=r"with 3 values or bytes; is it cut"):
        line(program(opcode="constant", operand_ids=[], literal=small))


def test_long_literals_and_floats_are_elided_as_xla_elides_them():
    flag = MESSAGES["Literal"](preds=[True] * 11)
    flag.shape.element_type = 1
    flag.shape.dimensions.append(11)
    assert "constant({...})" in line(program(opcode="constant", operand_ids=[], literal=flag))
    flag.shape.dimensions[:] = [2]
    flag.preds[:] = [True, False]
    assert "constant({true, false})" in line(program(opcode="constant", operand_ids=[], literal=flag))


def test_device_groups_in_each_of_their_messages():
    def groups(**field):
        return (
            line(program(opcode="all-gather", channel_id=3, **field)).partition("replica_groups=")[2].split(", dim")[0]
        )

    iota = {"num_replica_groups": 4, "num_devices_per_group": 2, "iota_reshape_dims": [2, 2, 2]}
    turned = MESSAGES["Iota"](**iota, iota_transpose_perm=[2, 1, 0])
    assert groups(iota_collective_device_list=turned) == "[4,2]<=[2,2,2]T(2,1,0)"
    assert groups(iota_collective_device_list=MESSAGES["Iota"](**iota)) == "[4,2]<=[2,2,2]"
    older = MESSAGES["DeviceList"](iota_replica_group_list=turned)  # as torch_xla 2.9 has it
    assert groups(collective_device_list=older) == "[4,2]<=[2,2,2]T(2,1,0)"
    assert groups(replica_groups=[MESSAGES["Group"](replica_ids=[0, 2])]) == "{{0,2}}"
    assert groups() == "{}"
    mesh = MESSAGES["MeshAxes"]()
    mesh.mesh.axes.add(name="dp", size=4)
    mesh.mesh.axes.add(name="tp", size=2)
    mesh.axes.add().sub_axis_info.pre_size, mesh.axes[0].sub_axis_info.size = 2, 2
    assert groups(mesh_axes_replica_group_list=mesh) == "mesh['dp'=4,'tp'=2] {'dp':(2)2}"
    mesh.mesh.device_ids.extend([0, 2, 1, 3, 4, 6, 5, 7])
    assert "device_ids=(0,2,1,3,4,6,5,7) {" in groups(mesh_axes_replica_group_list=mesh)


def test_the_windows_of_a_permute_in_place_are_told_apart_by_the_operand_dims():
    found = line(program(opcode="collective-permute-start", dynamic_slice_sizes=[1, 2]))
    assert "slice_sizes={{1},{2}}" in found


def test_a_backend_config_may_stand_in_the_module_payloads():
    made = program(backend_config_payload=MESSAGES["Payload"](id=1))
    made.payloads.extend([b"", b'{"estimated_cycles":"7"}'])
    assert 'backend_config={"estimated_cycles":"7"}' in line(made)
    made.computations[0].instructions[1].backend_config_payload.id = 2
    with pytest.raises(HloError, match="backend_config of 'r' is not in the serialized module"):
        line(made)
    assert 'backend_config="{\\"a\\":}}"' in line(program(backend_config=b'{"a":}}'))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": b"\x10\x63"}, "unknown element type 99"),
        ({"opcode": "Copy me"}, "cannot read the opcode 'Copy me' of instruction 'r'"),
        ({"name": "a b"}, "cannot read the instruction name 'a b'"),
        ({"operand_ids": [7]}, "an operand of instruction 'r' is not in its computation"),
        ({"called_computation_ids": [4]}, "a computation that 'r' calls is not in the serialized module"),
        ({"id": 10}, "the root of computation 'main' is not in the serialized module"),
    ],
)
def test_what_cannot_be_written_is_refused(changes, message):
    with pytest.raises(HloError, match=message):
        line(program(**changes))


def test_a_schedule_of_other_instructions_is_refused():
    made = program()
    made.schedule.sequences.add(key=1).value.instruction_ids.extend([8])
    with pytest.raises(HloError, match="the schedule of computation 'main' names other instructions"):
        line(made)


@pytest.mark.parametrize(
    "data", [b"", b"HloModule m\n", b"\x00" * 40, b'{"a": 1}', gzip.compress(b"x" * 99, mtime=0), b"\x0a\x02hi"]
)
def test_foreign_bytes_are_refused_in_one_line(data):
    with pytest.raises(HloError) as refused:
        proto.write_hlo_text(data)
    assert "\n" not in str(refused.value)


def test_wherever_its_computations_are_cut_it_is_refused(serialized):
    data = (serialized / "scan3.pb").read_bytes()
    whole = MESSAGES["Module"].FromString(data)
    end = data.index(whole.computations[-1].instructions[-1].name.encode())
    for at in range(end):
        with pytest.raises(HloError) as refused:
            proto.write_hlo_text(data[:at])
        assert "\n" not in str(refused.value)
