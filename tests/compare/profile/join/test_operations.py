"""What one line of HLO leaves out and another tells; those between slices are libtpu's, of v5e:2x2 in two slices."""

from tests.compare.timeline.build import trace_summary
from tests.compare.timeline.scenes import FUSION, collective, comms, done, start, timeline
from tests.compare.timeline.spaces import Space, tpu

RUNTIME = '_xla_host_transfer_handler_name="xla_megascale_runtime"'
BF16 = "bf16[1024,1024]{1,0:T(8,128)(2,1)}"
"""1024 x 1024 x 2 = 2,097,152 bytes."""


def exchange(number, kind, target):
    """Send, receive, and the end of each."""
    meets = f'{RUNTIME},_xla_host_transfer_rendezvous="psum.{number}_0",_xla_megascale_target={target}'
    attributes = f'is_host_transfer=true, frontend_attributes={{{meets},_xla_megascale_transfer_type="{kind}"}}'
    ends = f"is_host_transfer=true, frontend_attributes={{{RUNTIME}}}"
    shapes = f"({BF16}, u32[], token[])"
    return (
        f"%send.{number} = {shapes} send({BF16} %bitcast, token[] %after-all.{number}), channel_id=3, {attributes}",
        f"%recv.{number} = {shapes} recv(token[] %after-all.{number}), channel_id=2, {attributes}",
        f"%send-done.{number} = token[] send-done({shapes} %send.{number}), channel_id=3, {ends}",
        f"%recv-done.{number} = ({BF16}, token[]) recv-done({shapes} %recv.{number}), channel_id=2, {ends}",
    )


SUM = exchange(1, "ALL_REDUCE", '"{1,2}x{0:3}"')
SHIFT = exchange(2, "ONE_TO_ONE", "{{100000->200000},{100001->200001},{100002->200002},{100003->200003}}")


def test_a_send_and_its_receive_are_one_communication_until_the_receive_is_over(tmp_path):
    space = Space()
    (send, receive, sent, received) = SUM
    ops = [(send, 0, 10), (receive, 10, 10), (FUSION, 20, 80), (sent, 100, 50), (received, 150, 100)]
    tpu(space, 0, ops, Steps=[("0", 0, 500)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "kind", "start_ns", "duration_ns", "payload_bytes") == [
        ("send.1", "all-reduce", 0, 250, 2_097_152)
    ]
    per_step = trace_summary(joined)["per_step"]
    assert (per_step["communication_ns"], per_step["hidden_ns"], per_step["compute_ns"]) == (250, 80, 80)
    assert joined.unjoined_events == 0


def test_two_under_way_at_once_are_told_apart_by_where_they_meet(tmp_path):
    space = Space()
    first, second = (
        [(line, 10 * at + late, 5) for at, line in enumerate(pairs)] for pairs, late in ((SUM, 0), (SHIFT, 5))
    )
    tpu(space, 0, [*first, *second])
    assert comms(timeline(space, tmp_path), "kind", "start_ns", "duration_ns") == [
        ("all-reduce", 0, 35),
        ("collective-permute", 5, 35),
    ]


def test_an_end_that_began_before_the_record_has_what_its_start_says(tmp_path):
    """The second time shows the start."""
    space = Space()
    tpu(space, 0, [(done(3), 0, 5), (FUSION, 5, 5), (start(3), 10, 5), (FUSION, 15, 5), (done(3), 20, 5)])
    assert comms(timeline(space, tmp_path), "collective", "axes", "start_ns", "duration_ns") == [
        ("all-reduce-start.3", "tensor", 0, 5),
        ("all-reduce-start.3", "tensor", 10, 15),
    ]


def test_the_line_of_asynchronous_operations_may_call_it_by_another_word(tmp_path):
    space = Space()
    ops = [(start(3), 0, 5), (FUSION, 5, 20), (done(3), 25, 5), (collective("all-reduce", 3), 40, 5)]
    tpu(space, 0, ops, Async_XLA_Ops=[(collective("all-reduce", 3), 0, 30)])
    joined = timeline(space, tmp_path)
    # What is on the device's own line is another, though it is called the same.
    assert comms(joined, "line", "start_ns", "duration_ns") == [("Async XLA Ops", 0, 30), ("XLA Ops", 40, 5)]
