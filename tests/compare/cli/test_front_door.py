"""`wirediff`: every command behind one door, called by its own name, and nothing loaded that is not asked for."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

from compare.cli.front_door import COMMANDS, GROUPS, main
from meshes.process.log import complain, log, log_note
from tests.commands import run_process
from tests.places import EXAMPLE, ROOT


def test_the_help_has_each_command_once_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == main([]) == 0
    printed = capsys.readouterr().out
    for title, group in GROUPS.items():
        block = printed[printed.index(f"{title}:") :].split("\n\n")[0]
        assert re.findall(r"^  ([\w-]+)  ", block, re.MULTILINE) == list(group)
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_calls_itself_as_it_was_called_and_tells_as_much_as_it_is_asked_to(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    printed = capsys.readouterr().out
    assert end.value.code == 0
    assert printed.startswith(f"usage: wirediff {name} ")
    assert f"example: wirediff {name} " in " ".join(printed.split())
    assert "-v, --verbose" in printed
    assert "-q, --quiet" in printed


def test_behind_its_module_a_command_is_called_by_that(capsys: pytest.CaptureFixture[str]) -> None:
    from compare.cli.plan import main as plan

    with pytest.raises(SystemExit):
        plan(["--help"])
    assert capsys.readouterr().out.startswith("usage: python -m compare.plan ")


def test_an_unknown_command_is_one_line_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reprot"]) == 2
    assert capsys.readouterr().err == "error: wirediff has no command 'reprot'; did you mean report?\n"
    assert main(["xyz"]) == 2
    assert capsys.readouterr().err == "error: wirediff has no command 'xyz'; see wirediff --help\n"
    assert main(["simulate", "run"]) == 2
    assert capsys.readouterr().err.endswith(" 'simulate'; did you mean what-if or cost or replay?\n")


def test_options_come_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-v", "plan"]) == 2
    said = "error: options come after the command: wirediff COMMAND '-v'; see wirediff --help\n"
    assert capsys.readouterr().err == said


def test_a_run_is_replayed_by_astra_sims_rules_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Its graphs are in picoseconds, which our own engine would take for nanoseconds."""
    with pytest.raises(SystemExit) as end:
        main(["replay", str(ROOT / "docs/example-run")])
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is a run: write --as astra-sim; on our own engine what-if simulates it" in printed.err


@pytest.mark.parametrize("words", [("plan", "--list", "models"), ("teach", "--list")], ids=" ".join)
def test_a_list_of_names_can_be_json(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 10


def test_a_wrong_option_is_one_line_that_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["plan", "--mesh", "tp8", "--nonsense"])
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: unrecognized arguments: --nonsense; see wirediff plan --help"
    ]


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"wirediff {project['version']}"
    assert project["scripts"]["wirediff"] == "compare.cli.front_door:script"


@pytest.mark.parametrize("words", ["--pairs 0-1:1000", "--collective all-reduce --bytes 1000"])
def test_a_form_of_simulate_answers_as_it_does_there(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    from compare.cli.simulate import main as simulate

    request = [*words.split(), "--dims", "ring:4", "--bandwidth", "90", "--latency", "1000"]
    assert main(["cost", *request]) == 0
    answer = capsys.readouterr().out
    assert simulate(request) == 0
    assert capsys.readouterr().out == answer


def test_cost_takes_the_names_of_astra_sim(capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--collective", "all-reduce", "--bytes", "1048576", "--dims", "ring:4", "--bandwidth", "90"]
    ours = "--chunks 4 --active 2 --endpoint 20 --memory 1000"
    theirs = "--preferred-dataset-splits 4 --active-chunks-per-dimension 2 --endpoint-delay 20 --local-mem-bw 1000"
    printed = []
    for words in (ours, theirs):
        assert main(["cost", *machine, "--latency", "500", *words.split(), "--as", "astra-sim", "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_version(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--version"])
    assert (end.value.code, capsys.readouterr().out.split()[0]) == (0, "wirediff")


@pytest.mark.parametrize("line", [("plan", "--mesh", "tp8", "--json"), ("query", str(EXAMPLE), "--json")])
def test_quiet_leaves_errors_alone_and_verbose_adds_what_is_done(
    line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where words and options may be mixed."""
    seen = {}
    for word in ("--quiet", "", "--verbose"):
        assert main([*line, *[word][: len(word)]]) == 0
        capsys.readouterr()
        log_note("which")
        log().debug("what")
        complain("why")
        seen[word] = capsys.readouterr().err.split("\n")[:-1]
    assert seen == {
        "--quiet": ["why"],
        "": ["note: which", "why"],
        "--verbose": ["note: which", "what", "why"],
    }
    assert main(["plan", "--mesh", "tp8", "--json"]) == 0  # as before


def test_a_level_that_a_notebook_has_chosen_stays() -> None:
    code = """
import logging
logging.getLogger("wirediff").setLevel("ERROR")
from meshes.process.log import complain, is_quiet, log_note
log_note("which")
complain("why")
print(is_quiet())
"""
    done = run_process("-c", code, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "why\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("wirediff pl", ["plan"]),
        ("wirediff re", ["report", "remedy", "replay"]),
        ("wirediff run --m", ["--mesh", "--model", "--microbatches"]),
        ("wirediff plan --qu", ["--quiet"]),
        ("wirediff query --na", ["--name"]),
    ],
)
def test_a_shell_completes_commands_and_their_options(line: str, words: list[str]) -> None:
    """As argcomplete's function for bash asks: by its variables, and the answer on descriptor 8."""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m compare 8>&1 9>/dev/null"],
        cwd=ROOT,
        env=os.environ | asked,
        capture_output=True,
        text=True,
    )
    assert sorted(done.stdout.split()) == sorted(words)


def test_python_m_compare_is_the_same_door() -> None:
    words = ("--mesh", "tp8", "--json")
    done, module = (run_process("-m", *door, *words, check=True) for door in (("compare", "plan"), ("compare.plan",)))
    assert done.stdout == module.stdout
