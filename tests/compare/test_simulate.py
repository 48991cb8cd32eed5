"""`python -m compare.simulate`: the command line, its answers and its refusals."""

import subprocess
import sys

import pytest

from compare.cli.simulate import main
from tests.compare.network.astra_sim_runs import read_runs
from tests.compare.simulate.asking import answer, refuse
from tests.places import ROOT

TORUS = ("--bytes", "1048576", "--dims", "ring:4,ring:2", "--bandwidth", "90,90", "--latency", "1000,1000")
ALL_REDUCE = ("--collective", "all-reduce", *TORUS, "--algorithm", "ring,ring")


def test_the_cycles_of_one_collective(capsys):
    assert main([*ALL_REDUCE, "--as", "astra-sim", "--json"]) == 0
    assert capsys.readouterr().out == '{"cycles": 28081}\n'


def test_every_run_of_the_real_program_by_the_command_line():
    for run in read_runs():
        words = run.words
        request = ["--collective", words["collective"], "--as", "astra-sim"]
        for key in (
            "bytes",
            "dims",
            "bandwidth",
            "latency",
            "algorithm",
            "multi",
            "chunks",
            "active",
            "queues",
            "memory",
            "endpoint",
            *(["group"] if words["group"] else []),
        ):
            request += [f"--{key}", words[key]]
        request += ["--aware"] if run.aware else []
        assert answer(*request) == {"cycles": run.last}, run.name


def test_without_a_simulator_named_the_answer_is_our_own_in_ns(capsys):
    # 3 × (1,000 + 262,144 / 90) in dim 0, 2 × (1,000 + 131,072 / 90) in dim 1, and dim 0 again.
    ns = 2 * 3 * (1000 + 262144 / 90) + 2 * (1000 + 131072 / 90)
    found = answer(*ALL_REDUCE)
    assert found["ns"] == pytest.approx(ns, abs=0.001)
    assert found["model"] == "native"
    assert [each["collective"] for each in found["passes"]] == ["reduce-scatter", "all-reduce", "all-gather"]
    main(list(ALL_REDUCE))
    assert "our own model" in capsys.readouterr().out


def test_the_passes_of_greedy_are_those_that_are_played(capsys):
    """Two chunks over two alike rings of two: one begins in each dim."""
    words = (
        "--collective",
        "all-reduce",
        "--bytes",
        "1600",
        "--dims",
        "ring:2,ring:2",
        "--bandwidth",
        "1,1",
        "--latency",
        "0,0",
        "--chunks",
        "2",
        "--multi",
        "greedy",
    )
    found = answer(*words)
    assert found["ns"] == 1200
    rows = [(each["chunks"], each["collective"], each["dim"], each["ns"]) for each in found["passes"]]
    assert rows == [
        (1, "reduce-scatter", 0, 400),
        (1, "all-reduce", 1, 400),
        (1, "all-gather", 0, 400),
        (1, "reduce-scatter", 1, 400),
        (1, "all-reduce", 0, 400),
        (1, "all-gather", 1, 400),
    ]
    main(list(words))
    lines = capsys.readouterr().out.splitlines()[2:]
    assert lines[0] == lines[4] == "  1 of 2 chunks, among the others:"
    assert lines[5] == "  reduce-scatter in dim 1, ring: 800 bytes a rank, 1 step, 400.0 ns"


def test_messages_of_several_sizes():
    ring = ("--dims", "ring:8", "--bandwidth", "90", "--latency", "1000", "--as", "astra-sim")
    found = answer("--pairs", "0-2:2097152,1-2:4194304", *ring, "--aware")
    assert found == {"cycles": 66103, "arrivals": [66103, 44402]}
    assert answer("--pairs", "0-4,1-4", "--bytes", "1048576", *ring) == {
        "cycles": 14850,
        "arrivals": [14850, 13850],
    }


def test_a_message_without_bytes_has_those_of_the_next_or_of_bytes():
    """A step of the model: 10 ns a hop, 1 byte a ns."""
    ring = ("--dims", "ring:8", "--bandwidth", "1", "--latency", "10")
    assert answer("--pairs", "0-1,2-3,4-5:400,6-7:50", *ring)["arrivals"] == [410, 410, 410, 60]
    assert answer("--pairs", "0-1,4-5:400,6-7", "--bytes", "30", *ring)["arrivals"] == [40, 410, 40]


def test_the_lines_add_up_to_the_time(capsys):
    words = ("--collective", "all-reduce", "--bytes", "1048576", "--machine", "v6e:2x4")
    main(list(words))
    total, machine, *parts = capsys.readouterr().out.splitlines()
    assert machine.startswith("machine: ")
    assert parts[0] == "  launch: 5,096.2 ns"
    ns = [float(line.removesuffix(" ns").rpartition(" ")[2].replace(",", "")) for line in parts]
    assert sum(ns) == pytest.approx(float(total.partition(" ns")[0].replace(",", "")), abs=0.2)
    found = answer(*words)
    assert found["launch_ns"] + sum(each["ns"] for each in found["passes"]) == pytest.approx(found["ns"], abs=0.01)


def test_a_group_is_in_the_dim_of_the_machine(capsys):
    words = ("--collective", "all-reduce", "--bytes", "1048576", "--machine", "v5e:2x4", "--group", "0,2,4,6")
    assert [each["dim"] for each in answer(*words)["passes"]] == [1]
    main(list(words))
    assert "  all-reduce in dim 1, ring: " in capsys.readouterr().out


def test_the_help_names_the_three_forms_and_where_their_help_is(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    words = " ".join(capsys.readouterr().out.split())
    for form in ("RUN [--machine FILE|NAME] [--scale", "FOLDER [--machine", "RUN --h", "FOLDER --as astra-sim --h"):
        assert f"python -m compare.simulate {form}" in words
    for option in ("--sweep", "--best", "--into", "--out DIR"):
        assert f"[{option}" in words
    for command in (["RUN", "--help"], ["FOLDER", "--as", "astra-sim", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0


def test_the_formula_of_halving_doubling_on_a_switch():
    """Every swap goes two hops; S/2, S/4 and S/8 one way, and back."""
    words = ("--dims", "switch:8", "--bandwidth", "90", "--latency", "1000", "--algorithm", "halving-doubling")
    found = answer("--collective", "all-reduce", "--bytes", "1048576", *words)
    assert found["ns"] == pytest.approx(2 * (3 * 2 * 1000 + 1048576 * (1 / 2 + 1 / 4 + 1 / 8) / 90), abs=0.001)
    assert "twice Σ_{k=1..L} (hα + S/2^k B); h = 1, switch 2;" in (ROOT / "docs/network.md").read_text(encoding="utf-8")


def test_a_tpu_slice_by_name(capsys):
    words = ("--collective", "all-gather", "--bytes", "1048576", "--machine", "v6e:2x4")
    main(list(words))
    assert "line of 2 (87.07 GB/s, 465.67 ns) × line of 4" in capsys.readouterr().out
    # Rings of 2 and of 4, as inputs for ASTRA-sim say it: floor(465.67 + 1 MiB / 87.066), and 4 MiB; 10 a step and one.
    dim_1, dim_0 = int(465.67 + 2**20 / 87.066), int(465.67 + 2**22 / 87.066)
    assert answer(*words, "--as", "astra-sim") == {"cycles": 3 * dim_1 + 40 + dim_0 + 20}


def test_a_machine_of_a_file(tmp_path):
    path = tmp_path / "ring.toml"
    path.write_text('[[dims]]\nkind = "ring"\nsize = 4\nbandwidth = 1\nlatency = 100\n', encoding="utf-8")
    words = ("--collective", "all-reduce", "--bytes", "2400", "--machine", str(path))
    assert answer(*words)["ns"] == 6 * 700
    assert answer(*words, "--as", "astra-sim") == {"cycles": 6 * 700 + 7 * 10}
    assert answer(*words, "--as", "astra-sim", "--memory", "3") == {"cycles": 6 * 700 + 3 * 600 + 7 * 10}


LINKS = """[time]
link_bytes_per_s = { value = 2e9, unit = "byte/s" }
hop_s = { value = 1e-7, unit = "s" }
launch_s = { value = 5e-6, unit = "s" }
"""
RING_OF_4 = '[[dims]]\nkind = "ring"\nsize = 4\n'


def test_a_chip_of_ones_own_has_the_links_of_a_slice_and_of_a_file_that_leaves_them_out(capsys, tmp_path):
    """Four in a ring, 1,200 bytes of each in six steps: 6 × (100 ns + 300 ÷ 2), and the launch, 5,000."""
    path, machine = tmp_path / "own.toml", tmp_path / "ring.toml"
    path.write_text(LINKS)
    words = ("--collective", "all-reduce", "--bytes", "1200", "--machine")
    machine.write_text('chip = "v6e"\n' + RING_OF_4)
    assert answer(*words, str(machine), "--chip", str(path))["ns"] == 5000 + 6 * (100 + 300 / 2)
    machine.write_text('chip = "v6e"\nlaunch = 0\n' + RING_OF_4 + "bandwidth = 1\n")
    assert answer(*words, str(machine), "--chip", str(path))["ns"] == 6 * (100 + 300)
    machine.write_text('chip = "v6e"\n' + RING_OF_4)
    usual = 5096.2 + 6 * (465.67 + 300 / 87.066)  # the constants of docs/model.md
    assert answer(*words, str(machine))["ns"] == pytest.approx(usual, abs=0.001)
    # A line of two chips: three messages of 600 bytes would be two; 2 × (100 + 600 ÷ 2), and the launch.
    main([*words, "v6e:1x2", "--chip", str(path)])
    printed = capsys.readouterr().out
    assert printed.startswith("5,800.0 ns")
    assert "line of 2 (2 GB/s, 100 ns)" in printed


@pytest.mark.parametrize(
    ("machine", "own", "line"),
    [
        ("v6e:2x4", 'generation = "v5e"\n', "own.toml: generation: this file is of 'v5e', the chips are v6e"),
        (RING_OF_4, "", "ring.toml: --chip is of the chip that it names, and it names none; write chip ="),
        ('chip = "v9"\n' + RING_OF_4, "", "unknown TPU generation 'v9'"),
    ],
)
def test_a_chip_that_is_not_the_machines_is_one_line(tmp_path, machine, own, line):
    (tmp_path / "own.toml").write_text(own)
    if "[" in machine:
        (tmp_path / "ring.toml").write_text(machine)
        machine = str(tmp_path / "ring.toml")
    words = ("--collective", "all-reduce", "--bytes", "1200", "--machine", machine)
    assert line in refuse(*words, "--chip", tmp_path / "own.toml")


ONE = ("--collective", "all-reduce", "--bytes", "1000")
RING = ("--dims", "ring:4", "--bandwidth", "1", "--latency", "1")
WRONG = [
    ((), "write --collective or --pairs; a run folder is for what-if and replay, a Chakra trace for replay"),
    (("--collective", "broadcast", *TORUS), "invalid choice: 'broadcast'"),
    (("--collective", "all-reduce", *RING), "--bytes is not given; write --bytes 1048576"),
    ((*ONE,), "one of --machine and --dims is given"),
    ((*ONE, *RING, "--machine", "v6e:2x4"), "one of --machine and --dims is given"),
    ((*ONE, *RING, "--chip", "own.toml"), "--chip belongs to --machine, whose links it knows"),
    ((*ONE, "--dims", "ring:4"), "--dims has its --bandwidth and --latency"),
    ((*ONE, "--dims", "ring:4,ring:2", "--bandwidth", "1", "--latency", "1,1"), "--bandwidth has 1 numbers for 2 dims"),
    ((*ONE, "--dims", "ring:4", "--bandwidth", "1", "--latency", "1,1"), "--latency has 2 numbers for 1 dims"),
    ((*ONE, "--dims", "ring:4", "--bandwidth", "0", "--latency", "1"), "dims.0.bandwidth: the bandwidth of a dim is"),
    ((*ONE, "--dims", "ring:4", "--bandwidth", "nan", "--latency", "1"), "more than 0, not nan"),
    ((*ONE, "--dims", "ring:4", "--bandwidth", "x", "--latency", "1"), "--bandwidth: 'x' is no number"),
    ((*ONE, "--dims", "ring:1", "--bandwidth", "1", "--latency", "1"), "dims.0.size: a dim has 2 to"),
    ((*ONE, "--dims", "torus:4", "--bandwidth", "1", "--latency", "1"), "unknown dim 'torus'; known are ring, line"),
    ((*ONE, "--dims", "ring", "--bandwidth", "1", "--latency", "1"), "'ring' is no dim; write kind:size, like ring:4"),
    ((*ONE, *RING, "--algorithm", "bruck"), "unknown algorithm 'bruck'; known are ring"),
    ((*ONE, *RING, "--algorithm", "one-ring,ring"), "2 algorithms of all-reduce for 1 dims"),
    ((*ALL_REDUCE[:2], *TORUS, "--algorithm", "one-ring,ring"), "one-ring goes over all ranks and stands last"),
    ((*ONE, *RING, "--algorithm", "ring,ring"), "2 algorithms of all-reduce for 1 dims"),
    ((*ONE, *RING, "--multi", "best"), "invalid choice: 'best'"),
    ((*ONE, *RING, "--chunks", "0"), "'0' is no whole number from 1"),
    ((*ONE, *RING, "--memory", "0"), "'0' is no bandwidth; write GB/s like 2765"),
    ((*ONE, *RING, "--group", "0,a"), "--group: 'a' is no rank"),
    ((*ONE, *RING, "--group", "0,9"), "group: rank 9 is not on this machine, which has 4 ranks"),
    ((*ONE, *RING, "--group", "1,1"), "group: two or more ranks, each once"),
    ((*ONE, *RING, "--as", "ns-3"), "invalid choice: 'ns-3'"),
    ((*ONE, *RING, "--aware"), "--aware belongs to --as astra-sim"),
    ((*ONE, *RING, "--as", "astra-sim", "--endpoint", "0"), "an endpoint delay of 0 is not simulated"),
    (("--pairs", "0>4", *RING, "--bytes", "1"), "'0>4' is no message; write sender-receiver"),
    (("--pairs", "0-4", *RING, "--bytes", "1"), "pairs: rank 4 is not on this machine"),
    (("--pairs", "1-1", *RING, "--bytes", "1"), "rank 1 sends to itself"),
    (("--pairs", ",".join(["0-1"] * 257), *RING, "--bytes", "1"), "257 messages of rank 0 at once; at most 256"),
    (("--pairs", "0-1", *RING, "--bytes", "1", "--group", "0,1"), "--group belongs to --collective"),
    (("--pairs", "0-1:5,2-3", *RING), "'2-3' has no bytes; write 2-3:1048576, or --bytes 1048576"),
    ((*ONE, "--machine", "v5e:2x4", "--group", "1,3,0,2"), "with rank 1 a group is 0,1 (dim 0), 1,3,5,7 (dim 1)"),
    ((*ONE, "--machine", "v6e:16x16", "--group", "3,4"), "is 0,1,2,…,15 (dim 0), 3,19,35,…,243 (dim 1), or all"),
    ((*ONE, "--machine", "v9:2x4"), "unknown TPU generation 'v9'"),
    ((*ONE, "--machine", "v6e:1x1"), "v6e:1x1 is one device"),
    ((*ONE, "--machine", "nowhere.toml"), "nowhere.toml: No such file or directory"),
    (("--collective", "all-gather", "--bytes", "0", *RING, "--as", "astra-sim"), "has chunks without bytes"),
    (
        (*ONE, "--dims", "ring:65536", "--bandwidth", "1", "--latency", "1", "--as", "astra-sim", "--chunks", "999"),
        "messages to replay; at most 10,000,000 are replayed",
    ),
]


@pytest.mark.parametrize(("words", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_request_is_one_line_and_status_2(words, says):
    assert says in refuse(*words)


def test_a_refusal_of_a_process_is_its_last_word():
    words = (*ONE, *RING, "--as", "astra-sim", "--endpoint", "0")
    done = subprocess.run(
        [sys.executable, "-m", "compare.simulate", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: an endpoint delay of 0 is not simulated: most runs of ASTRA-sim abort at it; write 1 or more\n"
    )


def test_lines_that_astra_sim_s_rules_close_to_rings_are_said(capsys):
    one = ("--collective", "all-reduce", "--bytes", "1048576")
    # Of v6e:2x4 the side of four chips is open; a ring of two chips is the same pair of links.
    main([*one, "--machine", "v6e:2x4", "--as", "astra-sim"])
    said = capsys.readouterr().err
    assert said == (
        "note: ASTRA-sim has no lines: the line of 4 chips is a ring here, with a link more than v6e:2x4 has\n"
    )
    main([*one, "--machine", "v6e:2x4"])
    assert capsys.readouterr().err == ""
    main([*one, "--machine", "v6e:16x16", "--as", "astra-sim"])
    assert capsys.readouterr().err == ""
    main([str(ROOT / "docs/example-run"), "--as", "astra-sim", "--arm", "jax", "--phase", "decode"])
    assert capsys.readouterr().err.count("a ring here, with a link more than v5e:2x4 has") == 1
