"""The user's cache: finished folders under keys that cover all of their inputs.

An entry is written to a scratch folder, sealed with a manifest of its key and digests, then renamed: a kill leaves no
partial entry, and of two runs that produce the same entry the second keeps the first's.  An entry that is damaged, or
stands under another's key, does not agree with its manifest and is produced again.  Scratch folders of killed
processes are removed when the next run opens the cache.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import platformdirs

from compare.run.errors import WorkError
from meshes.process import atomic_files
from meshes.process.documents import read_json
from meshes.process.log import log

VARIABLE = "WIREDIFF_CACHE"
MANIFEST = "manifest.json"
BEGUN = "begun"
"""The folder of scratch folders, one per process."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Entries of one kind (`program`, `compiled`) each under `<root>/<kind>/<key>/`."""

    root: Path
    scratch: Path | None = None
    """This process's scratch folder, removed at its end."""

    def find(self, kind: str, key: str, *, results: Sequence[str] = ()) -> Path | None:
        """The entry if it is intact, else `None`; a damaged one is renamed at once, then removed.

        results: names, or patterns, of what it must hold.
        """
        entry = self.root / kind / key
        if not os.path.lexists(entry):
            return None
        if _is_intact(entry, kind=kind, key=key, results=results):
            log().debug("cached: %s %s", kind, key[:12])
            return entry
        log().info("the cache entry %s is damaged: made anew", entry)
        hidden = self._begun()
        with suppress(OSError):  # another run saw it too
            hidden.parent.mkdir(parents=True, exist_ok=True)
            entry.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)
        return None

    def begin(self) -> Path:
        """A new folder to write an entry into."""
        folder = self._begun()
        folder.mkdir(parents=True)
        return folder

    def _begun(self) -> Path:
        return (self.scratch or self.root / BEGUN) / uuid4().hex

    def keep(self, folder: Path, *, kind: str, key: str) -> Path:
        """Seal a folder of `begin` and rename it into place."""
        entry = self.root / kind / key
        log().debug("kept: %s %s", kind, key[:12])
        try:
            (folder / MANIFEST).write_text(json.dumps({"kind": kind, "key": key, "files": _digests(folder)}, indent=1))
            entry.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(entry)
        except OSError:
            # Another run was first, or the disk is full; either way the scratch folder is complete.
            if first := self.find(kind, key):
                shutil.rmtree(folder, ignore_errors=True)
            return first or folder
        return entry


@contextmanager
def open_cache(*, bypass: bool = False) -> Iterator[Cache]:
    """The cache at `WIREDIFF_CACHE`, or in the user's cache directory.

    `bypass` gives an empty temporary one: the user's cache is neither read nor written.
    """
    if bypass:
        with atomic_files.temporary() as folder:
            yield Cache(folder)
        return
    root = cache_folder()
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(atomic_files.new_folder(root / BEGUN, str))
        except OSError as error:
            raise WorkError(
                f"cannot write to the cache {root}: {error.strerror}; set {VARIABLE} to another folder, or use "
                f"--no-cache"
            ) from error
        remove_leftovers()
        yield Cache(root, scratch)


def cache_folder() -> Path:
    """Where the user's cache is."""
    return Path(os.environ.get(VARIABLE) or platformdirs.user_cache_dir("wirediff")).absolute()


def remove_leftovers() -> None:
    """Remove the scratch folders of dead processes from the user's cache."""
    atomic_files.remove_leftovers(cache_folder() / BEGUN, "*")


def make_key(parts: object) -> str:
    """The cache key of a JSON value: its SHA-256."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def sources_digest(*paths: Path) -> str:
    """Digest of these source files, and of all sources in these folders: names and contents."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix in {".py", ".toml", ".md"} and "__pycache__" not in file.parts:
                digest.update(f"{path.name}/{file.relative_to(path)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _is_intact(entry: Path, *, kind: str, key: str, results: Sequence[str]) -> bool:
    """Whether it is what was kept under this key, whole, and its documents can be read."""
    try:
        seal = read_json(entry / MANIFEST)
        if (seal["kind"], seal["key"]) != (kind, key) or not seal["files"] or seal["files"] != _digests(entry):
            return False
        documents = [read_json(entry / name) for name in seal["files"] if "/" not in name and name.endswith(".json")]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return all(isinstance(each, dict) for each in documents) and all(any(entry.glob(name)) for name in results)


def _digests(folder: Path) -> dict[str, str]:
    """Of all files in it, by their paths, but for the manifest; a link out of it is no file of it."""
    inside = folder.resolve()
    return {
        path.relative_to(folder).as_posix(): file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(inside) and path != folder / MANIFEST
    }


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
