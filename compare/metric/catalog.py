"""Every metric by name: its unit, what it is, and where CCL-Bench's own number of that name differs.

docs/metrics.md, section 13, has the formulas; a test holds the two to each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from compare.metric import times, traffic
from compare.metric.errors import MetricError
from compare.metric.subject import Subject
from compare.metric.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One name."""

    name: str
    unit: str
    meaning: str
    theirs: str
    """What CCL-Bench's tool of this name does otherwise for a TPU trace (at 1d257f0): why that is another number."""
    measure: Callable[[Subject], Value]


_BYTES = "sums all devices and all steps, and counts bytes_accessed, which is operands and results"
_MEDIAN = (
    "counts bytes_accessed, in GiB, and takes the number of devices that show the operation for the size of its group"
)

_ROWS = (
    Metric(name="avg_step_time", unit="s", measure=times.avg_step_time,
           meaning="mean step: of each device from its own start to its own end",
           theirs="the marks of one version of vLLM on the host, without the first and last; else the length of the "
                  "whole trace ÷ iteration of the card"),
    Metric(name="ttft", unit="s", measure=times.ttft,
           meaning="step of the prefill; of a trace of a whole inference its first step",
           theirs="the first mark of one version of vLLM; else none"),
    Metric(name="tpot", unit="s", measure=times.tpot,
           meaning="step of the decode; of a trace of a whole inference the mean of the steps after the first",
           theirs="those marks without the first and last; else none"),
    Metric(name="mfu", unit="%", measure=times.mfu,
           meaning="model_flops of a device's operations in a step ÷ (step × peak of the device)",
           theirs="divides by the time in which any device computes, not by the step, and counts what encloses others "
                  "beside what it encloses"),
    Metric(name="communication_fraction", unit="%", measure=times.communication_fraction,
           meaning="time in which a device communicates ÷ step",
           theirs="sums durations (two at once count twice), counts the local broadcast as communication, and divides "
                  "by all events of the device, steps and programs among them"),
    Metric(name="communication_ratio", unit="%", measure=times.communication_ratio,
           meaning="time in which a device communicates ÷ time in which it computes or communicates",
           theirs="sums durations of all devices; its whole includes steps and programs"),
    Metric(name="total_communication_time", unit="s", measure=times.total_communication_time,
           meaning="time in which one device communicates in one step",
           theirs="sums all devices, and the start, the done and the whole of an asynchronous collective, ÷ iteration "
                  "of the card"),
    Metric(name="comm_kernel_breakdown_tpu", unit="s", measure=times.comm_kernel_breakdown_tpu,
           meaning="time in which one device communicates in one step, summed over kinds; --json has each",
           theirs="a table instead of a number: durations of all devices and steps, by a word of the name; the start, "
                  "the done and the whole of an asynchronous collective are added"),
    Metric(name="compute_comm_overlap", unit="%", measure=times.compute_comm_overlap,
           meaning="the part of the communication in which the same device computes; -1 without communication",
           theirs="matches names of all events, those of the host among them, and holds one device's communication "
                  "against another's compute"),
    *(
        Metric(name=f"bandwidth_utilization_{word}_group_6", unit="GB/s", measure=partial(traffic.bandwidth, kind=kind),
               meaning=f"median bus bandwidth of the executions of {kind}: payload × factor of NCCL-tests ÷ duration",
               theirs=_MEDIAN)
        for word, kind in (("allgather", "all-gather"), ("allreduce", "all-reduce"), ("alltoall", "all-to-all"),
                           ("reducescatter", "reduce-scatter"))
    ),
    *(
        Metric(name=f"collective_vol_{word}_gb", unit="GB", measure=partial(traffic.volume, kind=kind),
               meaning=f"payload of {kind} of one device in one step", theirs=_BYTES)
        for word, kind in (("allreduce", "all-reduce"), ("allgather", "all-gather"),
                           ("reducescatter", "reduce-scatter"), ("alltoall", "all-to-all"))
    ),
    Metric(name="collective_vol_total_gb", unit="GB", measure=partial(traffic.volume, kind=None),
           meaning="payload of all collectives, permutes among them, of one device in one step",
           theirs=f"{_BYTES}; leaves permutes out"),
    Metric(name="dominant_kernel_concentration", unit="%", measure=times.dominant_kernel_concentration,
           meaning="largest share of one hlo_category in the time of operations, without what encloses others",
           theirs="counts loops, calls and branches beside what they enclose, and the line of asynchronous operations "
                  "(copy-start, all-gather-start) beside those of the core"),
    Metric(name="estimated_bandwidth", unit="GB/s", measure=times.estimated_bandwidth,
           meaning="bytes_accessed of one device's operations in a step, without what encloses others, ÷ step",
           theirs="sums bytes_accessed of all devices and all events, loops among them, ÷ length of the trace"),
    Metric(name="average_memory_bandwidth", unit="GB/s", measure=times.average_memory_bandwidth,
           meaning="bytes read and written ÷ time, of asynchronous local copies from start to done",
           theirs="only copies whose done is an event of its own, from the start's beginning to the done's beginning; "
                  "pairs by number alone, over all devices"),
    Metric(name="memory_transfer_overhead", unit="%", measure=times.memory_transfer_overhead,
           meaning="the part of a step in which local copies run, and the device neither computes nor communicates",
           theirs="lays all devices over each other; divides by marks of one version of vLLM, else none"),
    Metric(name="straggler", unit="ratio", measure=times.straggler,
           meaning="(longest − shortest) ÷ longest time in which a device communicates in a step",
           theirs="NCCL kernels of rank*_trace.json only: 0 for every TPU trace"),
    Metric(name="coll_call_num", unit="count", measure=traffic.coll_call_num,
           meaning="executions of collectives of one device in one step",
           theirs="NCCL kernels of kineto_trace_0.json only: 0 for every TPU trace"),
    Metric(name="traffic_window", unit="s", measure=traffic.traffic_window,
           meaning="median positive interval from the traffic of one axis to that of another, on one device",
           theirs="sums of communication time by name of operation, of PyTorch's traces only; fails for a TPU trace"),
    Metric(name="traffic_distribution", unit="ratio", measure=traffic.traffic_distribution,
           meaning="the largest axis' share of the wire bytes",
           theirs="there is no such tool any more"),
    Metric(name="bubble_size_pipeline", unit="ratio", measure=times.bubble_size_pipeline,
           meaning="time of the ticks in which a stage holds no microbatch ÷ time of all ticks",
           theirs="there is no such tool any more"),
    Metric(name="scale_up_bw_utility", unit="%", measure=traffic.scale_up_bw_utility,
           meaning="100·(T − T₂ₓ)/T of the modelled step, T₂ₓ with links of twice the rate",
           theirs="ASTRA-sim on traces of PyTorch; none for a TPU trace"),
    Metric(name="hockney_alpha_s", unit="s", measure=traffic.hockney_alpha_s,
           meaning="intercept of T/(2(n − 1)) over S/n of all-reduces, n the size of the group",
           theirs="n is the number of all chips, and S the whole shape of the result, of a tuple none"),
    Metric(name="hockney_beta_s_per_byte", unit="s/byte", measure=traffic.hockney_beta_s_per_byte,
           meaning="slope of T/(2(n − 1)) over S/n of all-reduces, n the size of the group",
           theirs="n is the number of all chips, and S the whole shape of the result, of a tuple none"),
)  # fmt: skip

METRICS: Mapping[str, Metric] = MappingProxyType({row.name: row for row in _ROWS})


def find_metric(name: str) -> Metric:
    """The metric of this name.  `MetricError` for any other."""
    if name not in METRICS:
        raise MetricError(f"unknown metric {name!r}; --list names all {len(METRICS)}")
    return METRICS[name]
