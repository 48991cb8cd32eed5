"""`run.txt`: what ASTRA-sim's command line says, and what of it is not simulated."""

import pytest

from compare.chakra.run_line import RunLine, read_run_line
from compare.timeline.errors import TimingError

LINES = [
    ("", RunLine()),
    ("x --num-queues-per-dim=2", RunLine(queues=2)),
    ("x --num-queues-per-dim 2 # --injection-scale=3", RunLine(queues=2)),
    ("x --injection-scale=2.5 --comm-scale=7 --compute-scale 3 --logging-folder log", RunLine(injection_scale=2.5)),
    ("x --rendezvous-protocol=true", RunLine(rendezvous=True)),
    ("x --rendezvous-protocol=0", RunLine()),
    # There a switch takes no word behind it.
    ("x --rendezvous-protocol false --injection-scale 3", RunLine(rendezvous=True, injection_scale=3.0)),
    ("bin/AstraSim_Analytical_Congestion_Aware \\\n  --system-configuration=./system.json", RunLine(aware=True)),
    ("bin/AstraSim_Analytical_Congestion_Unaware --workload-configuration=congestion_aware/w", RunLine()),
]


@pytest.mark.parametrize(("line", "found"), LINES)
def test_a_command_line(tmp_path, line, found):
    (tmp_path / "run.txt").write_text(line)
    assert read_run_line(tmp_path / "run.txt") == found


def test_no_command_line(tmp_path):
    assert read_run_line(tmp_path / "run.txt") == RunLine()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "--logical-topology-configuration=t.json",
            "--logical-topology-configuration: not simulated; known are --num-q",
        ),
        ("--num-queue-per-dim=2", "--num-queue-per-dim: not simulated"),
        ("--num-queues-per-dim=0", "--num-queues-per-dim: a whole number from 1, not '0'"),
        ("--injection-scale=fast", "--injection-scale: a number from 0, not 'fast'"),
        ("--rendezvous-protocol=perhaps", "--rendezvous-protocol: true or false, not 'perhaps'"),
        ("--system-configuration=other.json", "system.json of the folder is read, not 'other.json'; rename"),
        ("'", "no command line: No closing quotation"),
    ],
)
def test_what_is_not_simulated_names_its_option(tmp_path, line, problem):
    (tmp_path / "run.txt").write_text(line)
    with pytest.raises(TimingError, match=problem):
        read_run_line(tmp_path / "run.txt")
