"""A workload card of CCL-Bench, as far as the metrics ask for it."""

from dataclasses import dataclass
from pathlib import Path

from compare.ccl_bench_metrics.errors import MetricError
from compare.timeline.errors import TimingError
from compare.timeline.yaml_document import YAML_BYTES, parse_yaml


@dataclass(frozen=True, slots=True)
class Card:
    """The YAML file of a trace directory."""

    path: Path
    content: dict[str, object]

    def find(self, *keys: str) -> object:
        """The value under nested keys.  `MetricError`, naming the key, where there is none."""
        value: object = self.content
        for place, key in enumerate(keys):
            if not isinstance(value, dict) or key not in value:
                raise MetricError(f"{self.path} has no {'.'.join(keys[: place + 1])}, which this metric needs")
            value = value[key]
        return value

    def number(self, *keys: str) -> int:
        """The same of a whole number."""
        value = self.find(*keys)
        if isinstance(value, bool) or not isinstance(value, int):
            raise MetricError(f"{'.'.join(keys)} of {self.path} is {value!r}; a whole number was expected")
        return value


def read_card(folder: Path) -> Card | None:
    """The card of a trace directory, if there is one.

    `MetricError` where there are several, or it cannot be read.
    """
    cards = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())
    if not cards:
        return None
    if len(cards) > 1:
        names = ", ".join(path.name for path in cards[:3])
        raise MetricError(f"{folder} has {len(cards)} cards ({names}); a trace directory has one")
    try:
        with cards[0].open("rb") as file:
            content = parse_yaml(file.read(YAML_BYTES + 1))
    except TimingError as error:
        raise MetricError(f"{cards[0]} is {error}") from None
    if not isinstance(content, dict):
        raise MetricError(f"{cards[0]} is no workload card: it has no keys")
    return Card(cards[0], content)
