"""JSON and TOML of strangers: whatever a file holds, it is a value or one line, within limits."""

import os
from pathlib import Path

import pytest

from meshes.process.documents import DEPTH, JSON_BYTES, TOML_BYTES, parse_json, read_json, read_toml
from meshes.process.errors import MeshError


def file(folder: Path, text: str | bytes) -> Path:
    path = folder / "file"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


GOOD = [
    ('{"a": [1, -2.5, "b", null, true]}', {"a": [1, -2.5, "b", None, True]}),
    ("\ufeff[]", []),
    ('"\\ud83d\\ude00 \\\\ud800"', "\N{GRINNING FACE} \\ud800"),
    (str(2**63 - 1), 2**63 - 1),
    ("[" * DEPTH + "]" * DEPTH, None),
]


@pytest.mark.parametrize(("text", "value"), GOOD, ids=range(len(GOOD)))
def test_json_is_read(tmp_path, text, value):
    read = read_json(file(tmp_path, text))
    assert value is None or read == value


BAD_JSON = {
    "deep lists": ("[" * 100_000, "nested deeper than 64 tables and lists"),
    "deep tables": ('{"a":' * 100_000, "nested deeper than 64"),
    "deep and whole": ("[" * 900 + "]" * 900, "nested deeper than 64"),
    "one too deep": ("[" * (DEPTH + 2) + "]" * (DEPTH + 2), "nested deeper than 64"),
    "400 digits": ("9" * 400, "the whole number 99.* is too large; 64 bits are read"),
    "5,000 digits": ("[1" + "0" * 5_000 + "]", "the whole number 10.* is too large"),
    "64 bits and one": (str(2**63), "the whole number 9223372036854775808 is too large"),
    "1e400": ('{"a": 1e400}', "the number 1e400 is too large"),
    "Infinity": ('{"a": -Infinity}', "-Infinity is none of its numbers"),
    "NaN": ("NaN", "NaN is none of its numbers"),
    "half a pair": ('"\\ud800"', "not JSON: .*surrogates not allowed"),
    "cut": ('{"a": [1, ', "not JSON: Expecting value"),
    "no text": (b"\xff\xfe\x00", "not JSON: .*can't decode byte"),
    "escape": ('{"\x1b[31m": 1}', "not JSON: Invalid control character"),
    "too large": (b" " * (JSON_BYTES + 1), "larger than 33,554,432 bytes"),
}


@pytest.mark.parametrize(("text", "says"), BAD_JSON.values(), ids=BAD_JSON)
def test_what_is_not_json_is_one_line(tmp_path, text, says):
    with pytest.raises(MeshError, match=f"^(not JSON.*)?{says}") as raised:
        read_json(file(tmp_path, text))
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400


BAD_TOML = {
    "deep lists": ("a = " + "[" * 30_000, "nested deeper than 64"),
    "deep tables": ("a = " + "{a = " * 5_000, "nested deeper than 64"),
    "deep and whole": ("a = " + "[" * 100 + "]" * 100, "nested deeper than 64"),
    "100,000 dots": ("a." * 100_000 + "a = 1", "larger than 65,536 bytes"),
    "30,000 dots": ("a." * 30_000 + "a = 1", "not TOML that can be read: line 1 has more than 100 dots"),
    "dots behind a string": ('"=#".' + "a." * 30_000 + "a = 1", "line 1 has more than 100 dots"),
    "a table of dots": ("[" + "a." * 30_000 + "a]", "line 1 has more than 100 dots"),
    "5,000 digits": ("a = 1" + "0" * 5_000, "not TOML: Exceeds the limit"),
    "cut": ("a = [1", "not TOML: Unclosed array"),
    "no text": (b"\xff", "not TOML: .*can't decode byte"),
    "too large": (b"#" * (TOML_BYTES + 1), "larger than 65,536 bytes"),
}


@pytest.mark.parametrize(("text", "says"), BAD_TOML.values(), ids=BAD_TOML)
def test_what_is_not_toml_is_one_line(tmp_path, text, says):
    with pytest.raises(MeshError, match=says) as raised:
        read_toml(file(tmp_path, text))
    assert str(raised.value).isprintable()


def test_the_most_dots_that_are_read_end_soon(tmp_path):
    lines = [f"{'a.' * 99}b{number} = 1" for number in range(300)]
    with pytest.raises(MeshError, match="nested deeper than 64"):
        read_toml(file(tmp_path, "\n".join(lines)))


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(MeshError, match="no file; a JSON file was expected"):
            read_json(place)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "nothing")


def test_text_is_read_as_bytes_are():
    assert parse_json("[1]") == parse_json(b"[1]") == [1]
