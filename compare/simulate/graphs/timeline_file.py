"""A simulated graph as a timeline for Perfetto."""

from pathlib import Path

import pandas as pd

from compare.metrics.verdicts import VERDICTS
from compare.network.engine.graph_simulator import SimulatedGraph
from compare.network.programs.timeline import show_timeline
from compare.render.time.perfetto import write_trace
from compare.render.time.timeline_view import ProgramTimeline
from compare.simulate.graphs.subject import Subject
from compare.simulate.print_answer import describe_machine
from meshes.process import atomic_files


def write_timeline(path: Path, subject: Subject, simulated: SimulatedGraph) -> None:
    """Every rank as a device, in Chrome's trace format."""
    machine = subject.machine
    on = machine.name if machine.name != "machine" else describe_machine(machine)
    timeline = show_timeline(simulated, range(subject.graph.num_ranks), {}, label=f"simulated on {on}")
    shares = pd.DataFrame({"collective": [], "verdict": [], **{verdict: [] for verdict in VERDICTS}})
    program = ProgramTimeline(
        phase="trace",
        arm="",
        title=subject.name,
        cell=f"{subject.graph.num_ranks} ranks",
        default=True,
        timeline=timeline,
        shares=shares,
    )
    with atomic_files.temporary() as folder:
        write_trace(folder / "trace", timelines=[program])
        atomic_files.write_bytes(path, (folder / "trace").read_bytes())
