"""What the ids in groups number: partitions, replicas, or devices (XLA's `GetCollectiveOpGroupMode`)."""

import pytest

from compare.hlo.devices.groups import DeviceNumbering, groups_of
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

FOUR = DeviceNumbering(replicas=2, partitions=2)
"""Two replicas of two partitions: device = 2 x replica + partition."""


def item(opcode, attributes):
    lines = [
        "HloModule m",
        "ENTRY main {",
        "  p = f32[8]{0} parameter(0)",
        f"  ROOT r = f32[8]{{0}} {opcode}(p), {attributes}",
    ]
    return read("\n".join([*lines, "}"])).entry.root


@pytest.mark.parametrize(
    ("opcode", "attributes", "groups"),
    [
        # No channel: ids are replicas, each partition for itself.
        ("all-reduce", "replica_groups={{0,1}}", ((0, 2), (1, 3))),
        ("all-reduce", "replica_groups={}", ((0, 2), (1, 3))),
        # A channel alone: replicas, with all of their partitions.
        ("all-reduce", "channel_id=1, replica_groups={{0,1}}", ((0, 1, 2, 3),)),
        ("all-reduce", "channel_id=1, replica_groups={{0},{1}}", ((0, 1), (2, 3))),
        # Global ids.
        (
            "all-reduce",
            "channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true",
            ((0, 3), (1, 2)),
        ),
        # These kinds have no such attribute: with a channel ids are partitions, each replica for itself.
        ("all-to-all", "channel_id=1, replica_groups={{0,1}}", ((0, 1), (2, 3))),
        ("all-to-all", "replica_groups={{0,1}}", ((0, 2), (1, 3))),
        ("collective-permute", "channel_id=1, source_target_pairs={{0,1}}", ((0, 1), (2, 3))),
        ("collective-permute", "source_target_pairs={{0,1}}", ((0, 2), (1, 3))),
        ("collective-broadcast", "channel_id=1, replica_groups={{1,0}}", ((1, 0), (3, 2))),
    ],
)
def test_with_replicas_and_partitions_the_channel_decides(opcode, attributes, groups):
    assert groups_of(item(opcode, attributes), opcode, FOUR) == groups


@pytest.mark.parametrize(
    ("program", "more"),
    [
        (DeviceNumbering(8, 1), ""),
        (DeviceNumbering(8, 1), "channel_id=1, "),
        (DeviceNumbering(8, 1), "channel_id=1, use_global_device_ids=true, "),
        (DeviceNumbering(1, 8), "channel_id=1, use_global_device_ids=true, "),
        (DeviceNumbering(1, 8, is_counted=False), ""),
        (DeviceNumbering(1, 8, is_counted=False), "channel_id=1, "),
    ],
)
def test_ids_of_replicas_alone_global_ids_and_those_of_no_counts_are_devices(program, more):
    found = groups_of(item("all-reduce", more + "replica_groups={{0,1,2,3},{4,5,6,7}}"), "all-reduce", program)
    assert found == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_no_groups_are_all_devices():
    everyone = ((0, 1, 2, 3, 4, 5, 6, 7),)
    for program in (DeviceNumbering(8, 1), DeviceNumbering(1, 8, is_counted=False)):
        for attributes in ("replica_groups={}", "dimensions={0}", "channel_id=1, replica_groups={}"):
            assert groups_of(item("all-reduce", attributes), "all-reduce", program) == everyone
    assert (
        groups_of(item("all-reduce", "channel_id=1, replica_groups={}"), "all-reduce", DeviceNumbering(1, 8))
        == everyone
    )


def test_without_a_channel_no_groups_are_all_replicas():
    """XLA's GetCollectiveOpGroupMode: kCrossReplica.  Of one replica each of eight partitions is alone."""
    program, alone = DeviceNumbering(1, 8), tuple((device,) for device in range(8))
    for attributes in ("replica_groups={}", "dimensions={0}", "replica_groups={{0}}"):
        assert groups_of(item("all-reduce", attributes), "all-reduce", program) == alone


def test_a_channel_and_one_replica_is_all_of_its_partitions():
    assert groups_of(item("all-reduce", "channel_id=1, replica_groups={{0}}"), "all-reduce", DeviceNumbering(1, 4)) == (
        (0, 1, 2, 3),
    )


def test_mesh_groups_keep_their_device_ids():
    text = "channel_id=1, replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}, use_global_device_ids=true"
    assert groups_of(item("all-reduce", text), "all-reduce", DeviceNumbering(1, 4)) == ((0, 2), (1, 3))


def test_a_group_of_one_slice_stands_for_one_in_every_slice():
    assert DeviceNumbering(1, 4, slices=2).repeat_in_slices(((0, 1), (2, 3))) == ((0, 1), (2, 3), (4, 5), (6, 7))


@pytest.mark.parametrize("groups", ["{{0,8}}", "{{0,1},{0,2}}", "nonsense"])
def test_groups_that_cannot_be_name_their_line(groups):
    with pytest.raises(HloError, match=r"^line 4: "):
        groups_of(
            item("all-reduce", f"channel_id=1, use_global_device_ids=true, replica_groups={groups}"),
            "all-reduce",
            DeviceNumbering(1, 8),
        )


@pytest.mark.parametrize(
    ("program", "kind", "attributes", "counted"),
    [
        # Two replicas of two partitions: 3 is a device, and neither a replica nor a partition.
        (FOUR, "all-reduce", "replica_groups={{0,3},{1,2}}", "replica 3"),
        (FOUR, "all-reduce", "channel_id=1, replica_groups={{0,2}}", "replica 2"),
        (FOUR, "all-to-all", "channel_id=1, replica_groups={{0,3}}", "partition 3"),
        # One replica of eight partitions: XLA compiles these, and does not run them (replica_id < replica_count).
        (DeviceNumbering(1, 8), "all-reduce", "replica_groups={{0,1,2,3},{4,5,6,7}}", "replica 7"),
        (DeviceNumbering(1, 8), "all-reduce", "channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}", "replica 7"),
        (DeviceNumbering(1, 8), "all-to-all", "replica_groups=[1,8]<=[8]", "replica 7"),
        (DeviceNumbering(1, 8), "collective-permute", "source_target_pairs={{0,1}}", "replica 1"),
        (DeviceNumbering(8, 1), "all-to-all", "channel_id=1, replica_groups={{0,1}}", "partition 1"),
        (DeviceNumbering(8, 1), "collective-permute", "channel_id=1, source_target_pairs={{6,7}}", "partition 7"),
    ],
)
def test_ids_beyond_what_they_count_are_refused(program, kind, attributes, counted):
    counts = f"{program.replicas} replicas? of {program.partitions} partitions?"
    named = "pairs" if kind == "collective-permute" else "groups"
    with pytest.raises(HloError, match=rf"^line 4: its {named} name {counted}, and the program has {counts};"):
        groups_of(item(kind, attributes), kind, program)
