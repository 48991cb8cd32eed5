"""The files that DuckDB may see: read, never written.

DuckDB's own access to files is off; what it allows in a folder, it allows for writing, too.  So a query reaches files
through this file system alone, which opens those of its runs, and those below the folders that `--allow-files` names.
"""

import os
import threading
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from glob import glob, has_magic
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from fsspec import AbstractFileSystem

from compare.query.sources import PROTOCOL, file_name, plain_paths

ALLOWED = "files://"
"""What stands before the path of a file below an allowed folder."""


class ReadOnlyFiles(AbstractFileSystem):  # type: ignore[misc]
    """What DuckDB calls of a file system to read; whatever else it calls raises."""

    protocol = (PROTOCOL.removesuffix("://"), ALLOWED.removesuffix("://"))
    cachable = False

    def __init__(self, files: Collection[Path], folders: Sequence[Path]) -> None:
        super().__init__()
        self._paths = {file_name(path): str(path) for path in files}
        self._folders = tuple(folder.resolve() for folder in folders)

    @property
    def prefixes(self) -> list[str]:
        """What DuckDB's setting `allowed_directories` has to hold."""
        return [PROTOCOL, ALLOWED] if self._folders else [PROTOCOL]

    def open(self, path: str, mode: str = "rb", **_: object) -> "_OpenFile":
        if mode != "rb":
            raise PermissionError(f"a query writes nothing, and not {plain_paths(path)}")
        return _OpenFile(self._locate(path))

    def glob(self, path: str, **_: object) -> list[str]:
        if not has_magic(path):
            self._locate(path)
            return [path]
        found = (ALLOWED + name for name in sorted(glob(path.removeprefix(ALLOWED), recursive=True)))
        return [name for name in found if self._is_allowed(name)]

    def info(self, path: str, **_: object) -> dict[str, object]:
        found = os.stat(self._locate(path))
        return {"name": path, "size": found.st_size, "type": "directory" if S_ISDIR(found.st_mode) else "file"}

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(os.stat(self._locate(path)).st_mtime, UTC)

    def _locate(self, name: str) -> str:
        """The path of a file.  `PermissionError` where a query may not read it."""
        if path := self._paths.get(name):
            return path
        if name.startswith(PROTOCOL) or not self._is_allowed(name):
            raise PermissionError(f"a query may not read {plain_paths(name)}")
        return name.removeprefix(ALLOWED)

    def _is_allowed(self, name: str) -> bool:
        path = Path(name.removeprefix(ALLOWED)).resolve()
        return any(path.is_relative_to(folder) for folder in self._folders)


class _OpenFile:
    """A file that threads of DuckDB read at once: the read of each follows its own seek."""

    def __init__(self, path: str) -> None:
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._sought = threading.local()
        self._at = 0
        if not S_ISREG(os.fstat(self._descriptor).st_mode):
            raise PermissionError(f"{path} is no file")

    def seek(self, at: int, _: int = 0) -> int:
        self._sought.at = self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        at = self._sought.__dict__.pop("at", self._at)
        data = os.pread(self._descriptor, size, at)
        self._at = at + len(data)
        return data

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = close  # DuckDB leaves its files open
