"""What a worker's line says to the one who asked."""

from compare.run.tasks import explained
from meshes.case import Case


def test_a_program_larger_than_the_memory_names_bytes_and_the_smallest_mesh_that_should_fit():
    said = (
        "does not fit in HBM: one device needs 78,812,649,882 bytes (73.40GiB) and has 16,911,433,728 bytes (15.75GiB)"
    )
    line = explained(said, case=Case.read("tp4@v5e:2x2", seq=16384, phases=("prefill",)))
    assert line.startswith("llama-3.1-8b on tp4 needs 78.8 GB on each device, but a v5e:2x2 device has 16.9 GB; ")
    assert "the smallest mesh that should fit" in line


def test_any_other_line_stays_as_it_is():
    assert explained("died of SIGABRT", case=Case.read("tp8")) == "died of SIGABRT"
