"""Figures that were drawn before, in the user's cache, under a key of what they show and of all that draws them."""

import hashlib
import json
import pickle
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from io import BytesIO
from pathlib import Path

from compare.render.picture import Picture
from compare.run.arms import read_versions
from compare.run.cache import Cache, make_key, open_cache, sources_digest
from compare.run.errors import WorkError

ROOT = Path(__file__).resolve().parents[3]
KIND = "pictures"
INDEX = "pictures.json"
SOURCES = (
    "compare/contract",
    "compare/hlo",
    "compare/metrics",
    "compare/passes",
    "compare/render",
    "compare/report",
    "compare/timeline",
    "compare/verdict",
    "meshes",
)
"""Where the files are that the process that draws imports: a change of any is another key."""
VERSIONS = ("matplotlib", "numpy", "pandas", "pillow")


def keep_pictures(request: object, draw: Callable[[], list[Picture]]) -> list[Picture]:
    """The pictures of a request: those of the cache, or what `draw` gives, which is kept.

    A cache that cannot be written is none.
    """
    with ExitStack() as stack:
        try:
            user_cache = stack.enter_context(open_cache())
        except WorkError:
            return draw()
        key = make_key({"request": _digest(request), "sources": _sources(), "versions": read_versions(VERSIONS)})
        if entry := user_cache.find(KIND, key, results=(INDEX,)):
            return _read(entry)
        pictures = draw()
        with suppress(OSError):
            _keep(user_cache, key, pictures)
        return pictures


def _read(entry: Path) -> list[Picture]:
    rows = json.loads((entry / INDEX).read_text(encoding="utf-8"))["pictures"]
    return [
        Picture(
            name=name,
            caption=caption,
            png=_file(entry, at, "png").read_bytes(),
            svg=_file(entry, at, "svg").read_bytes(),
        )
        for at, (name, caption) in enumerate(rows)
    ]


def _keep(user_cache: Cache, key: str, pictures: list[Picture]) -> None:
    folder = user_cache.begin()
    for at, picture in enumerate(pictures):
        _file(folder, at, "png").write_bytes(picture.png)
        _file(folder, at, "svg").write_bytes(picture.svg)
    rows = [(picture.name, picture.caption) for picture in pictures]
    (folder / INDEX).write_text(json.dumps({"pictures": rows}), encoding="utf-8")
    user_cache.keep(folder, kind=KIND, key=key)


def _file(folder: Path, at: int, suffix: str) -> Path:
    """By number: a picture's name may come from a run that somebody else wrote."""
    return folder / f"{at}.{suffix}"


@cache
def _sources() -> str:
    return sources_digest(*(ROOT / source for source in SOURCES))


def _digest(request: object) -> str:
    """Without pickle's memo: equal requests have equal bytes, whichever of their parts are one object."""
    written = BytesIO()
    pickler = pickle.Pickler(written)
    pickler.fast = True
    pickler.dump(request)
    return hashlib.sha256(written.getvalue()).hexdigest()
