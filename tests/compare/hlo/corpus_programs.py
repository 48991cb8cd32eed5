"""The compiled programs of `corpus/`, each read once in a process."""

import gzip
import json
from functools import cache, cached_property
from typing import Any

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.devices.axes import read_axes
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from tests.places import CORPUS

NAMES = sorted(path.name.removesuffix(".json") for path in CORPUS.glob("*.json"))
WORDS = {f"/{word}/": word for word in ("embed", "head", "sample")}
MAPS = {"both_branches": WORDS, "vocab": WORDS}
"""Programs whose source names its parts by words that anybody may use: they count where a map says so."""


class Program:
    """One program, and its answers by hand."""

    def __init__(self, name: str):
        self.name = name
        self.path = CORPUS / f"{name}.hlo.gz"
        self.by_hand: dict[str, Any] = json.loads((CORPUS / f"{name}.json").read_text())
        self.axes = read_axes(self.by_hand["axes"])

    @cached_property
    def text(self) -> str:
        return gzip.decompress(self.path.read_bytes()).decode()

    @cached_property
    def module(self) -> Module:
        return read(self.text)

    @cached_property
    def rows(self) -> list[Collective]:
        """Without the map and the device ids, which one answer by hand needs."""
        return collectives(self.module, self.axes)

    def named_rows(self) -> list[Collective]:
        ids, names = self.by_hand.get("device_ids", ()), SourceNames.of(MAPS.get(self.name))
        return collectives(self.module, self.axes, device_ids=ids, names=names)


load = cache(Program)
