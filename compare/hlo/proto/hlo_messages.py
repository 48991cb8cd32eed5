"""XLA's serialized programs, `HloProto` and `HloModuleProto`, as protobuf messages: the fields that are printed.

Field names and numbers are those of xla/service/hlo.proto and xla/xla_data.proto.  What is not in the table is passed
over; a name that ends in `Entry` is one entry of a map.  An instruction's shape, metadata and frontend attributes are
left as bytes: a program has few different ones, so each is parsed once.
"""

from functools import reduce

from compare.hlo.proto.messages import classes
from compare.hlo.proto.size_limits import Census

_MODULE = {
    "HloProto": "hlo_module=1:Module",
    "Module": (
        "name=1:string entry_computation_name=2:string computations=3*Computation entry_computation_id=6:int64 "
        "schedule=7:Schedule input_output_alias=8:Aliases device_assignment=15:DeviceAssignment "
        "stack_frame_index=17:Frames payloads=22*bytes"
    ),
    "Schedule": "sequences=1*SequenceEntry",
    "SequenceEntry": "key=1:int64 value=2:Sequence",
    "Sequence": "instruction_ids=1*int64",
    "Aliases": "entries=1*Alias",
    "Alias": "output_shape_index=1*int64 parameter_number=2:int64 parameter_shape_index=3*int64 kind=4:int32",
    "DeviceAssignment": "replica_count=1:int32 computation_count=2:int32 computation_devices=3*ReplicaDevices",
    "ReplicaDevices": "replica_device_ids=1*int64",
    "Frames": "file_names=1*string function_names=2*string file_locations=3*FileLocation stack_frames=4*StackFrame",
    "FileLocation": "file_name_id=1:int32 function_name_id=2:int32 line=3:int32",
    "StackFrame": "file_location_id=1:int32 parent_frame_id=2:int32",
    "Computation": "name=1:string instructions=2*Instruction id=5:int64 root_id=6:int64 execution_thread=8:string",
    "Instruction": (
        "name=1:string opcode=2:string shape=3:bytes metadata=7:bytes literal=8:Literal parameter_number=9:int64 "
        "fusion_kind=11:string tuple_index=13:int64 dimensions=14*int64 slice_dimensions=17*Slice "
        "dynamic_slice_sizes=20*int64 padding_config=21:Padding channel_id=26:int64 custom_call_target=28:string "
        "id=35:int64 operand_ids=36*int64 called_computation_ids=38*int64 backend_config=43:bytes "
        "is_host_transfer=47:bool replica_groups=49*Group source_target_pairs=52*Pair "
        "comparison_direction=63:string frontend_attributes=68:bytes use_global_device_ids=71:bool "
        "async_execution_thread=79:string collective_device_list=87:DeviceList iota_collective_device_list=92:Iota "
        "mesh_axes_replica_group_list=93:MeshAxes backend_config_payload=99:Payload"
    ),
    "Slice": "start=1:int64 limit=2:int64 stride=3:int64",
    "Group": "replica_ids=1*int64",
    "Pair": "source=1:int64 target=2:int64",
    "Payload": "value=1:bytes id=2:int64",
    "Metadata": "op_type=1:string op_name=2:string source_file=3:string source_line=4:int32 stack_frame_id=15:int32",
    "Attributes": "map=1*AttributeEntry",
    "AttributeEntry": "key=1:string value=2:string",
}
_DATA = {
    "Shape": "element_type=2:int32 dimensions=3*int64 tuple_shapes=4*Shape layout=5:Layout is_dynamic_dimension=6*bool",
    "Layout": "minor_to_major=1*int64 tiles=6*Tile element_size_in_bits=7:int64 memory_space=8:int64",
    "Tile": "dimensions=1*int64",
    "Literal": (
        "shape=1:Shape preds=2*bool u8s=3:bytes s32s=4*int32 s64s=5*int64 u32s=6*uint32 u64s=7*uint64 s8s=15:bytes "
        "u16s=16:bytes s16s=17:bytes"
    ),
    "Padding": "dimensions=1*PaddedDimension",
    "PaddedDimension": "edge_padding_low=1:int64 edge_padding_high=2:int64 interior_padding=3:int64",
    "DeviceList": "replica_groups=1*Group iota_replica_group_list=2:Iota",
    "Iota": (
        "num_replica_groups=1:int64 num_devices_per_group=2:int64 iota_reshape_dims=3*int64 iota_transpose_perm=4*int32"
    ),
    "MeshAxes": "mesh=1:Mesh axes=2*AxisRef",
    "Mesh": "axes=1*Axis device_ids=2*int64 iota_transform=3:Transform",
    "Axis": "name=1:string size=2:int64",
    "Transform": "reshape_dims=1*int64 transpose_perm=2*int64",
    "AxisRef": "mesh_axis_index=1:int64 sub_axis_info=2:SubAxis",
    "SubAxis": "pre_size=1:int64 size=2:int64",
}

MESSAGES = classes("wirediff.hlo", _MODULE | _DATA, oneofs={"Payload": {"value": "source", "id": "source"}})

ASSIGNMENT_MESSAGES = classes(
    "wirediff.hlo.assignment",
    {name: _MODULE[name] for name in ("HloProto", "DeviceAssignment", "ReplicaDevices")}
    | {"Module": "computations=3*bytes device_assignment=15:DeviceAssignment"},
)
"""A module of which only the device assignment is parsed."""

_LEFT = ("shape=3:bytes", "shape=3:Shape"), ("metadata=7:bytes", "metadata=7:Metadata")
CENSUS = Census(
    "wirediff.hlo",
    _MODULE | _DATA | {"Instruction": reduce(lambda text, one: text.replace(*one), _LEFT, _MODULE["Instruction"])},
)

ELEMENT_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4",
    22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4",
    30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 35: "f6e3m2fn", 36: "f6e2m3fn",
}  # fmt: skip
"""xla::PrimitiveType, as HLO text spells it."""

TUPLE, BUFFER = 13, 34
"""Those that hold other shapes."""
