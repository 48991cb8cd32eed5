"""A study file: what it asks for, and what is wrong with one."""

from pathlib import Path

import pytest

from docs.study.build.errors import StudyError
from docs.study.build.spec import choose_groups, read_study, sweep_commands

WORDS = """
title = "Two models"
topology = "v6e:2x4"
controls = ["attention"]

[[group]]
name = "Dense plans, 8 chips"
models = ["qwen3-4b", "phi-4"]
meshes = ["tp8", "dp2tp4@v5e:2x4"]
batch = [1, 8]

[[group]]
name = "one long prompt"
models = ["qwen3-4b"]
meshes = ["cp2tp4"]
controls = []
witnesses = ["hf-torchxla", "tunix"]
phases = ["decode"]
batch = 1
seq = [1024, 32768]
"""


def study_file(folder: Path, words: str) -> Path:
    path = folder / "study.toml"
    path.write_text(words)
    return path


def test_a_group_is_a_sweep_for_each_batch_and_sequence(tmp_path: Path) -> None:
    study = read_study(study_file(tmp_path, WORDS))
    assert (study.title, study.folder) == ("Two models", tmp_path)
    commands = {command.folder: command.options for command in sweep_commands(study)}
    assert list(commands) == [
        "dense-plans-8-chips/b1-s1024",
        "dense-plans-8-chips/b8-s1024",
        "one-long-prompt/b1-s1024",
        "one-long-prompt/b1-s32768",
    ]
    assert commands["dense-plans-8-chips/b8-s1024"] == (
        "--models",
        "qwen3-4b,phi-4",
        "--meshes",
        "tp8@v6e:2x4,dp2tp4@v5e:2x4",
        "--batch",
        "8",
        "--seq",
        "1024",
        "--controls",
        "attention",
        "--phases",
        "prefill,decode",
    )
    assert commands["one-long-prompt/b1-s32768"][-6:] == (
        "--controls",
        "none",
        "--phases",
        "decode",
        "--witness",
        "hf-torchxla,tunix",
    )


def test_a_control_is_a_word_that_the_sweep_knows_and_the_study_does_not(tmp_path: Path) -> None:
    study = read_study(study_file(tmp_path, WORDS.replace('["attention"]', '["a-later-one"]')))
    assert next(sweep_commands(study)).options[9] == "a-later-one"


def test_one_group_is_chosen_by_its_name(tmp_path: Path) -> None:
    study = read_study(study_file(tmp_path, WORDS))
    assert [group.name for group in choose_groups(study, ["One long prompt"]).groups] == ["one long prompt"]
    with pytest.raises(StudyError, match="no group is named sparse; there are dense-plans-8-chips, one-long-prompt"):
        choose_groups(study, ["sparse"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "has no [[group]] with name, models and meshes"),
        ("group = 3", "has no [[group]]"),
        ("chips = 8\n" + WORDS, "has chips; known are title, topology, controls, witnesses, phases, batch, seq"),
        (WORDS.replace('models = ["qwen3-4b"]', ""), "group 2 has no models"),
        (WORDS.replace("batch = [1, 8]", "batch = [0]"), "group 1: batch is [0]; write whole numbers, like [1, 8]"),
        (WORDS.replace("batch = [1, 8]", "batch = [true]"), "group 1: batch is [True]"),
        (WORDS.replace("seq = [1024, 32768]", 'seq = "long"'), "group 2: seq is 'long'"),
        (WORDS.replace('["cp2tp4"]', '"cp2tp4"'), "group 2: meshes is 'cp2tp4'; write a list of names"),
        (WORDS.replace("one long prompt", "dense plans 8 chips"), "two groups of one name"),
        (WORDS.replace("one long prompt", "–"), "group 2: name is '–'; write words"),
        (WORDS.replace("controls = []", "contols = []"), "group 2 has contols; known are"),
        ('title = "', "is not TOML"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(words: str, said: str, tmp_path: Path) -> None:
    path = study_file(tmp_path, words)
    with pytest.raises(StudyError) as refused:
        read_study(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"nowhere\.toml cannot be opened: No such file"):
        read_study(tmp_path / "nowhere.toml")
