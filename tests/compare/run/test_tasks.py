"""What a worker's end says to the one who started it."""

from compare.run.processes import ProcessEnd, Reason
from compare.run.tasks import explain
from meshes.case import Case


def process_end(error, reason=None):
    return ProcessEnd(status="failed", error=error, seconds=1, peak_bytes=0, reason=reason)


def test_a_program_larger_than_the_memory_names_bytes_and_the_smallest_mesh_that_should_fit():
    reason = Reason(kind="does not fit", needed_bytes=78_812_649_882, available_bytes=16_911_433_728)
    line = explain(process_end("any words", reason), case=Case.read("tp4@v5e:2x2", seq=16384, phases=("prefill",)))
    assert line.startswith("llama-3.1-8b on tp4 needs 78.8 GB on each device, but a v5e:2x2 device has 16.9 GB; ")
    assert "the smallest mesh that should fit" in line


def test_any_other_line_stays_as_it_is():
    words = "does not fit in HBM: one device needs 78,812,649,882 bytes (73.40GiB) and has 16,911,433,728 bytes"
    assert explain(process_end("died of SIGABRT"), case=Case.read("tp8")) == "died of SIGABRT"
    assert explain(process_end(words), case=Case.read("tp8")) == words
