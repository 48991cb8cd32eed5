"""The answer of `compare.simulate` in a terminal."""

from collections.abc import Iterator

from compare.network.machines.machine import Machine
from compare.network.machines.tpu import describe_rings
from compare.simulate.answer import Answer
from compare.simulate.request import Request
from meshes.process.log import log_note


def list_lines(request: Request, answer: Answer) -> Iterator[str]:
    """The number first, then the machine and the parts of the way."""
    count = len(request.messages)
    what = request.collective.kind if request.collective else f"{count} message{'' if count == 1 else 's'}"
    if answer.as_astra_sim:
        backend = "congestion-aware" if request.aware else "congestion-unaware"
        yield f"{int(answer.total):,} cycles of 1 ns: {what} by ASTRA-sim's rules ({backend})"
    else:
        yield f"{answer.total:,.1f} ns: {what}, our own model"
    yield f"machine: {describe_machine(request.machine)}"
    if answer.launch_ns:
        yield f"  launch: {answer.launch_ns:,.1f} ns"
    for chunks, passes in answer.passes:
        if len(answer.passes) > 1:
            yield f"  {chunks} of {request.machine.chunks} chunks, among the others:"
        elif chunks > 1:
            yield f"  each of {chunks} chunks, one behind another:"
        for each in passes:
            yield (
                f"  {each.kind} in dim {each.dim}, {each.algorithm}: {each.num_bytes:,.0f} bytes a rank, "
                f"{each.steps} step{'' if each.steps == 1 else 's'}, {each.ns:,.1f} ns"
            )
    if answer.arrivals and request.machine.launch_ns and not answer.as_astra_sim:
        yield f"  each with a launch of {request.machine.launch_ns:,.1f} ns"
    for message, ns in zip(request.messages, answer.arrivals, strict=bool(request.messages)):
        yield f"  {message.source} to {message.target}, {message.num_bytes:,} bytes: {ns:,.1f} ns"


def describe_machine(machine: Machine) -> str:
    """Its dims in one line: kind, size, bandwidth in GB/s (1e9), latency."""
    return " × ".join(
        f"{dim.kind} of {dim.size} ({dim.bytes_per_ns:.4g} GB/s, {dim.latency_ns:g} ns)" for dim in machine.dims
    )


def note_rings(name: str) -> None:
    """Say once that ASTRA-sim's machine is another than the slice; a machine's file says itself what it is."""
    if name and not name.endswith(".toml") and (note := describe_rings(name)):
        log_note(note)
