"""Energy coefficients from a user's TOML; whatever is wrong is one line that names its key.

```toml
name = "our v5e pod"            # left out: the file's name
generation = "v5e"              # left out: of any chip
calibrated-on = "v5e-8, June"   # shown by reports; left out: not calibrated
# [time], [voltage], [provenance]: docs/calibration.md
[energy.static]                 # any of matrix, vector, memory, ici, dcn, static; the others are the generation's
value = 95                      # of one chip
low = 90                        # left out: the value
high = 101
unit = "W"                      # pJ/FLOP, pJ/op, pJ/bit or pJ/byte, W
source = "power meter"          # left out: the file's name
standing = "measured"           # or published, derived, assumed; left out: assumed
```
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from compare.energy.coefficients import (
    COMPONENTS,
    HIGH,
    LOW,
    STANDINGS,
    UNITS,
    VALUE,
    Coefficient,
    Coefficients,
    coefficients,
)
from compare.timeline.errors import TimingError
from meshes.process.documents import read_toml
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

Table = Mapping[str, object]

_KEYS = ("name", "generation", "calibrated-on", "energy", "time", "voltage", "provenance")
"""`time` is read by `compare.schedule.time_file`, `voltage` by `voltage`, both beside this one."""
_ROW_KEYS = (VALUE, LOW, HIGH, "unit", "source", "standing")


def read_power(path: Path, *, generation: str) -> Coefficients:
    """A file's coefficients for chips of this generation; those that it leaves out are the generation's own.

    `OSError` where it can't be opened, `TimingError`, one line, where it holds anything else.
    """
    try:
        table: Table = read_toml(path)
    except MeshError as error:
        raise TimingError(f"{path} is {error}") from None
    try:
        return parse_power(table, generation=generation, name=path.stem)
    except TimingError as error:
        raise TimingError(f"{path}: {error}") from None


def parse_power(table: Table, *, generation: str, name: str) -> Coefficients:
    """The same of a table.  name: where it has none.  `TimingError`, which names the key."""
    _check_keys(table, _KEYS, "")
    meant = _text(table, "generation", generation)
    if meant != generation:
        raise TimingError(f"generation: these coefficients are of {quote(meant)}, the chips are {generation}")
    rows = table.get("energy", {})
    if not isinstance(rows, dict):
        raise TimingError(f"energy: a table of {', '.join(COMPONENTS)}, not {quote(rows)}")
    _check_keys(rows, COMPONENTS, "energy.")
    title = _text(table, "name", name)
    given = {component: _read_row(rows[component], component, title) for component in COMPONENTS if component in rows}
    table_row = coefficients(generation)
    return Coefficients(
        name=title,
        of=MappingProxyType({**table_row.of, **given}),
        core_share=table_row.core_share,
        calibrated_on=_text(table, "calibrated-on", "") if given else "",
    )


def _read_row(row: object, component: str, title: str) -> Coefficient:
    place = f"energy.{component}"
    if not isinstance(row, dict):
        raise TimingError(f"{place}: a table with value and unit, not {quote(row)}")
    _check_keys(row, _ROW_KEYS, f"{place}.")
    units = " or ".join(UNITS[component])
    if "unit" not in row:
        raise TimingError(f"{place}.unit: missing; it is {units}")
    if not isinstance(row["unit"], str) or row["unit"] not in UNITS[component]:
        raise TimingError(f"{place}.unit: {quote(row['unit'])} is no unit of {component}; it is {units}")
    if VALUE not in row:
        raise TimingError(f"{place}.value: missing; a number of {units}")
    value = _number(row[VALUE], f"{place}.{VALUE}")
    low, high = (_number(row.get(bound, value), f"{place}.{bound}") for bound in (LOW, HIGH))
    if not low <= value <= high:
        raise TimingError(f"{place}: low ≤ value ≤ high, not {low:g}, {value:g} and {high:g}")
    standing = row.get("standing", "assumed")
    if standing not in STANDINGS:
        raise TimingError(f"{place}.standing: one of {', '.join(STANDINGS)}, not {quote(standing)}")
    return Coefficient(
        value=value, low=low, high=high, unit=str(row["unit"]),
        source=_text(row, "source", title, f"{place}."), standing=str(standing),
    )  # fmt: skip


def _check_keys(table: Table, known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            raise TimingError(f"{place}{key}: unknown key; known are {', '.join(known)}")


def _text(table: Table, key: str, default: str, place: str = "") -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or (key in table and not value.strip()):
        raise TimingError(f"{place}{key}: a word, not {quote(value)}")
    return value


def _number(value: object, place: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
        raise TimingError(f"{place}: a number, not {quote(value)}")
    if value < 0:
        raise TimingError(f"{place}: {value:g} is negative; nothing gives energy back")
    if value > 1e9:
        raise TimingError(f"{place}: {value:g} is too large; at most 1e9")
    return float(value)
