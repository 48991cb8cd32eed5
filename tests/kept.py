"""What processes of the tests have made, kept in the user's cache under keys that cover all that it was made of.

A folder says itself what is to be made: its files before are the inputs, and `describe` adds what makes it: sources,
versions, flags.  So a folder is filled from the cache only where a process would write the same again.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compare.run import tasks
from compare.run.arms import read_versions
from compare.run.cache import MANIFEST, file_digest, make_key, open_cache, sources_digest
from tests.places import ROOT

MADE_BY = "made_by.json"
SAID = "said.json"
KIND = "test"
DISTRIBUTIONS = (
    "jax",
    "jaxlib",
    "libtpu",
    "flax",
    "orbax-checkpoint",
    "tokenizers",
    "torch",
    "torch_xla",
    "torchax",
    "transformers",
    "google-tunix",
    "qwix",
    "numpy",
    "safetensors",
)


def describe(folder: Path, *sources: str, **words: object) -> None:
    """Write what fills the folder: the digest of these source files and folders, all versions, the environment."""
    assert "torch_xla" not in sys.modules, "torch_xla is imported here, which changes the environment of what is kept"
    made_by = {
        "sources": sources_digest(*(ROOT / source for source in sources)),
        "versions": read_versions(DISTRIBUTIONS),
        "environment": tasks.describe_environment(),
        **words,
    }
    (folder / MADE_BY).write_text(json.dumps(made_by, indent=1, sort_keys=True))


def fill(folders: Sequence[Path], make: Callable[[Sequence[Path]], object], *, results: Sequence[str]) -> None:
    """Fill the folders: from the cache, or by one call of `make` for all that are not in it.

    results: names, or patterns, of what `make` writes into each; a folder without all of them failed, and is not kept.
    """
    keys = {folder: key_of(folder) for folder in folders}
    with open_cache() as cache:
        missing = []
        for folder, key in keys.items():
            if entry := cache.find(KIND, key, results=results):
                shutil.copytree(entry, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
            else:
                missing.append(folder)
        if missing:
            make(missing)
        for folder in missing:
            made = [[path for path in folder.glob(pattern) if path.is_file()] for pattern in results]
            if all(made):
                kept = cache.begin()
                for path in dict.fromkeys(path for paths in made for path in paths):
                    (kept / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, kept / path.relative_to(folder))
                cache.keep(kept, kind=KIND, key=keys[folder])


def key_of(folder: Path) -> str:
    """The key of a folder that is not filled yet: all its files, by name and content."""
    assert (folder / MADE_BY).is_file(), f"{folder} does not say what fills it"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return make_key({path.relative_to(folder).as_posix(): file_digest(path) for path in files})


def run_kept(
    folder: Path, *command: object, sources: Sequence[str], given: Mapping[str, str], timeout_s: float = 600
) -> subprocess.CompletedProcess[str]:
    """`python command…` from the repository's root, and all that it writes into the folder, kept where it ends well.

    sources: all that it imports.  given: variables of its environment.  The files in the folder are its inputs; an
    argument may name them, and no others.
    """
    words = [str(word) for word in command]
    describe(folder, *sources, command=[_placeless(word, folder) for word in words], given=dict(given))
    ended: list[subprocess.CompletedProcess[str]] = []

    def make(_: Sequence[Path]) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | given
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        ended.append(done)
        if done.returncode == 0:
            said = {"stdout": _placeless(done.stdout, folder), "stderr": _placeless(done.stderr, folder)}
            (folder / SAID).write_text(json.dumps(said))

    fill([folder], make, results=(SAID, "**/*"))
    if not ended:
        said = {
            name: text.replace("{folder}", str(folder)).replace("{root}", str(ROOT))
            for name, text in json.loads((folder / SAID).read_text()).items()
        }
        ended.append(subprocess.CompletedProcess(words, 0, **said))
    for name in (MADE_BY, SAID):
        (folder / name).unlink(missing_ok=True)
    return ended[0]


def _placeless(text: str, folder: Path) -> str:
    return text.replace(str(folder), "{folder}").replace(str(ROOT), "{root}")
