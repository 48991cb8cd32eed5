"""The user's cache: finished folders under keys that say all of what made them.

An entry is written beside, sealed with a manifest of digests, then renamed: a kill half-way leaves no half entry, and
of two runs that make the same one at once the second keeps the first's.  What was damaged later is seen by its
digests, and made again.  What a process had begun when it was killed goes when the next run opens the cache.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import platformdirs

from compare.run.errors import WorkError
from meshes.process import atomic_files
from meshes.process.documents import read_json

VARIABLE = "WIREDIFF_CACHE"
MANIFEST = "manifest.json"
BEGUN = "begun"
"""The folder of the folders of what is half made, one of each process."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Entries of one kind (`program`, `compiled`) each under `<root>/<kind>/<key>/`."""

    root: Path
    scratch: Path | None = None
    """Where entries are begun: this process's own folder, gone with it."""

    def find(self, kind: str, key: str) -> Path | None:
        """The entry, its files whole; a damaged one is taken out of sight at once, then removed."""
        entry = self.root / kind / key
        if not entry.exists():
            return None
        if _is_whole(entry):
            return entry
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
        try:
            seal = {path.name: file_digest(path) for path in sorted(folder.iterdir()) if path.is_file()}
            (folder / MANIFEST).write_text(json.dumps(seal, indent=1))
            entry.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(entry)
        except OSError:
            # Another run was first, or the disk is full; either way what was written here is whole.
            if first := self.find(kind, key):
                shutil.rmtree(folder, ignore_errors=True)
            return first or folder
        return entry


@contextmanager
def open_cache(*, bypass: bool = False) -> Iterator[Cache]:
    """The cache at `WIREDIFF_CACHE`, or in the user's cache directory.

    `bypass` gives an empty one that is gone at the end: nothing is read from the user's, and nothing is written to it.
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
    """Remove from the user's cache what processes that are no more had begun."""
    atomic_files.remove_leftovers(cache_folder() / BEGUN, "*")


def make_key(parts: object) -> str:
    """A name for everything that JSON can say."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def sources_digest(*places: Path) -> str:
    """Digest of the sources in these folders, or of these files: their names and their bytes."""
    total = hashlib.sha256()
    for place in places:
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix in {".py", ".toml"} and "__pycache__" not in file.parts:
                total.update(f"{place.name}/{file.relative_to(place)}\0".encode() + file.read_bytes() + b"\0")
    return total.hexdigest()


def _is_whole(entry: Path) -> bool:
    try:
        seal = read_json(entry / MANIFEST)
        plain = all(Path(name).name == name for name in seal)
        return bool(seal) and plain and all(file_digest(entry / name) == digest for name, digest in seal.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
