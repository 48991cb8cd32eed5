"""The cache under damage, under a kill half-way, and under two runs at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from compare.run import cache as caches
from compare.run.cache import Cache, make_key, open_cache, sources_digest
from compare.run.errors import WorkError
from tests.places import ROOT


def keep_entry(cache: Cache, text: str = "made once", *, name: str = "k") -> Path:
    folder = cache.begin()
    (folder / "program.mlirbc").write_text(text)
    (folder / "about.json").write_text("{}")
    return cache.keep(folder, kind="program", key=name)


def test_what_is_kept_is_found_again_by_its_key_alone(tmp_path):
    cache = Cache(tmp_path)
    assert cache.find("program", "k") is None
    entry = keep_entry(cache)
    assert cache.find("program", "k") == entry
    assert (entry / "program.mlirbc").read_text() == "made once"
    assert cache.find("program", "other") is None
    assert cache.find("compiled", "k") is None


DAMAGE = [
    lambda entry: (entry / "program.mlirbc").write_text("made  once"),
    lambda entry: (entry / "program.mlirbc").write_text(""),
    lambda entry: (entry / "about.json").unlink(),
    lambda entry: (entry / "manifest.json").unlink(),
    lambda entry: (entry / "manifest.json").write_text("{"),
    lambda entry: (entry / "manifest.json").write_text("{}"),
    lambda entry: (entry / "manifest.json").write_text("[1]"),
    lambda entry: os.truncate(entry / "program.mlirbc", 3),
    lambda entry: (entry / "more.txt").write_text("of nobody"),
    lambda entry: (shutil.rmtree(entry), entry.write_text("a file")),
    lambda entry: (shutil.rmtree(entry), entry.symlink_to("nowhere")),
    lambda entry: ((entry / "about.json").unlink(), (entry / "about.json").mkdir()),
]


def test_an_entry_under_another_key_or_kind_is_not_believed(tmp_path):
    cache = Cache(tmp_path)
    entry = keep_entry(cache)
    for kind, key in (("program", "other"), ("compiled", "k")):
        shutil.copytree(entry, tmp_path / kind / key)
        assert cache.find(kind, key) is None
        assert not (tmp_path / kind / key).exists()
    assert cache.find("program", "k") == entry
    (tmp_path / "program/link").symlink_to(entry)
    assert cache.find("program", "link") is None
    assert cache.find("program", "k") == entry


def test_an_entry_that_lacks_a_result_is_made_anew_though_its_manifest_agrees(tmp_path):
    cache = Cache(tmp_path)
    entry = keep_entry(cache)
    assert cache.find("program", "k", results=("about.json", "*.mlirbc")) == entry
    assert cache.find("program", "k", results=("about.json", "optimized.hlo.gz")) is None
    assert not entry.exists()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "[]", "", "{", '{"a": 1e999}'])
def test_an_entry_whose_documents_cannot_be_read_is_made_anew_though_its_manifest_agrees(tmp_path, text):
    cache = Cache(tmp_path)
    folder = cache.begin()
    (folder / "about.json").write_text(text)
    entry = cache.keep(folder, kind="program", key="k")
    assert cache.find("program", "k") is None
    assert not entry.exists()


def test_a_file_in_a_folder_of_an_entry_is_sealed_too(tmp_path):
    cache = Cache(tmp_path)
    folder = cache.begin()
    (folder / "libtpu").mkdir()
    (folder / "libtpu/libtpu.so").write_text("made once")
    entry = cache.keep(folder, kind="libtpu", key="k")
    assert cache.find("libtpu", "k") == entry
    (entry / "libtpu/libtpu.so").write_text("made 0nce")
    assert cache.find("libtpu", "k") is None


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_not_found_and_can_be_made_again(tmp_path, damage):
    cache = Cache(tmp_path)
    (tmp_path / "begun").mkdir()
    damage(keep_entry(cache))
    assert cache.find("program", "k") is None
    assert cache.find("program", "k") is None
    again = keep_entry(cache, "made again")
    assert cache.find("program", "k") == again
    assert (again / "program.mlirbc").read_text() == "made again"


def test_of_two_that_make_the_same_entry_the_first_stays(tmp_path):
    cache = Cache(tmp_path)
    first, second = keep_entry(cache, "first"), keep_entry(cache, "second")
    assert first == second
    assert (second / "program.mlirbc").read_text() == "first"
    assert list((tmp_path / "begun").iterdir()) == []


def test_an_entry_that_the_disk_refuses_is_used_from_where_it_was_written(tmp_path):
    cache = Cache(tmp_path)
    (tmp_path / "program").write_text("a file where a folder should be")
    assert (keep_entry(cache) / "program.mlirbc").read_text() == "made once"


WRITER = """
    import sys
    sys.path.insert(0, {root!r})
    from compare.run.cache import open_cache
    with open_cache() as cache:
        print("go", flush=True)
        for number in range({times}):
            folder = cache.begin()
            (folder / "a").write_bytes(bytes([number % 10]) * 3_000_000)
            (folder / "b").write_bytes(bytes([number % 10]) * 3_000_000)
            cache.keep(folder, kind="program", key=str(number % 10))
"""


def writer(root: Path, *, times: int) -> subprocess.Popen:
    script = textwrap.dedent(WRITER.format(root=str(ROOT), times=times))
    started = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"WIREDIFF_CACHE": str(root)},
        stdout=subprocess.PIPE,
    )
    assert started.stdout
    started.stdout.readline()
    return started


def whole(cache: Cache) -> int:
    """How many entries are there; each that is found must be whole."""
    count = 0
    for number in range(10):
        if entry := cache.find("program", str(number)):
            count += 1
            for name in ("a", "b"):
                assert (entry / name).read_bytes() == bytes([number]) * 3_000_000
    return count


def test_a_kill_at_any_moment_leaves_no_half_entry(tmp_path):
    for attempt in range(8):
        root = tmp_path / str(attempt)
        started = writer(root, times=10_000)
        time.sleep(0.01 * attempt)
        started.send_signal(signal.SIGKILL)
        started.communicate()
        cache = Cache(root)
        entries = len(list((root / "program").iterdir())) if (root / "program").exists() else 0
        assert whole(cache) == entries


def test_two_runs_at_once_keep_every_entry_whole(tmp_path):
    both = [writer(tmp_path, times=20) for _ in range(2)]
    while any(started.poll() is None for started in both):
        whole(Cache(tmp_path))
    assert [started.communicate() and started.returncode for started in both] == [0, 0]
    assert whole(Cache(tmp_path)) == 10


def test_the_environment_says_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("WIREDIFF_CACHE", str(tmp_path / "here"))
    with open_cache() as cache:
        assert cache.root == tmp_path / "here"
    with open_cache(bypass=True) as other:
        keep_entry(other)
        assert tmp_path not in other.root.parents
    assert not other.root.exists()
    assert list((tmp_path / "here" / "begun").iterdir()) == []


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WIREDIFF_CACHE", str(tmp_path / "file" / "cache"))
    with (
        pytest.raises(WorkError, match=r"cannot write to the cache .*set WIREDIFF_CACHE .*or use --no-cache"),
        open_cache(),
    ):
        pass


def test_what_a_killed_run_left_goes_with_the_next_and_nothing_of_one_that_lives(tmp_path, monkeypatch):
    monkeypatch.setenv("WIREDIFF_CACHE", str(tmp_path))
    dead, alive = (writer(tmp_path, times=10_000) for _ in range(2))
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    begun = tmp_path / "begun"
    assert len(list(begun.iterdir())) == 2
    with open_cache() as cache:
        assert len(list(begun.iterdir())) == 2  # its own, and that of the one that lives
        assert cache.scratch in begun.iterdir()
    (left,) = begun.iterdir()
    assert alive.poll() is None
    alive.send_signal(signal.SIGKILL)
    alive.communicate()
    with open_cache():
        assert not left.exists()
    assert list(begun.iterdir()) == []


def test_a_run_without_the_cache_leaves_nothing_where_the_next_one_looks(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "wirediff-of-a-dead-process"
    left.mkdir()
    mine = tmp_path / "wirediff-link"
    (tmp_path / "mine").mkdir()
    mine.symlink_to(tmp_path / "mine")
    with open_cache(bypass=True) as first, open_cache(bypass=True) as other:
        assert first.root.exists()
        assert other.root.exists()
        assert not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "wirediff-link"]


DAMAGES = [
    "[" * 100_000,
    '{"a": ' * 100_000,
    "[]",
    "3",
    "",
    "{}",
    '{"a": [1]}',
    '{"a": 1' + "0" * 400 + "}",
    "\xff",
    '{"../../stolen": "x"}',
    '{"/etc/hostname": "x"}',
    '{"a\\u0000": "x"}',
]


@pytest.mark.parametrize("manifest", DAMAGES, ids=[damage[:16] for damage in DAMAGES])
def test_an_entry_whose_manifest_is_damaged_is_made_anew(tmp_path, manifest):
    cache = Cache(tmp_path)
    entry = keep_entry(cache)
    (entry / "manifest.json").write_text(manifest, encoding="latin-1")
    assert cache.find("program", "k") is None
    assert keep_entry(cache) == entry
    assert cache.find("program", "k") == entry


def test_a_manifest_sends_nobody_outside_of_its_entry(tmp_path):
    cache = Cache(tmp_path)
    entry = keep_entry(cache)
    (tmp_path / "secret").write_text("mine")
    seal = json.loads((entry / "manifest.json").read_text())
    seal["files"]["../../secret"] = caches.file_digest(tmp_path / "secret")
    (entry / "manifest.json").write_text(json.dumps(seal))
    assert cache.find("program", "k") is None


def test_a_key_is_of_what_is_said_not_of_its_order():
    assert make_key({"a": 1, "b": [2]}) == make_key({"b": [2], "a": 1})
    assert len({make_key({"a": 1}), make_key({"a": 2}), make_key({"b": 1}), make_key({"a": "1"})}) == 4


def test_the_digest_of_sources_sees_names_and_bytes_of_sources_only(tmp_path):
    room = tmp_path / "room"
    (room / "__pycache__").mkdir(parents=True)
    (room / "a.py").write_text("x = 1")
    digests = {sources_digest(room)}
    (room / "__pycache__" / "a.cpython-311.pyc").write_text("compiled")
    (room / "notes.txt").write_text("notes")
    assert sources_digest(room) in digests
    for change in ("x = 2", "x = 3"):
        (room / "a.py").write_text(change)
        digests.add(sources_digest(room))
    (room / "a.py").rename(room / "b.py")
    digests |= {sources_digest(room), sources_digest(room / "b.py")}
    assert len(digests) == 5
