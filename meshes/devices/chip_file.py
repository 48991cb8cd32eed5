"""The one reader of chip files: those of the generations, beside this one, and a user's (`--chip FILE`).

```toml
name = "our v5e pod"            # left out: the file's name
generation = "v5e"              # left out: of any chip; else other chips are refused
calibrated-on = "v5e-8, June"   # shown by reports; left out: not calibrated
[energy.static]                 # any key of SCHEMA, in [sheet], [time] or [energy]; the others are the generation's
value = 95
low = 90                        # left out, as high: the value
high = 101
unit = "W"                      # never left out
source = "power meter"          # left out: the file's name
standing = "measured"           # or published, derived, assumed; left out: assumed
[voltage]                       # read by `compare.energy.voltage`
gamma = 0.4
```

A user's file says a part, or all that a generation's says.  The compiler makes programs for [slice] and `hbm_bytes`: a
file that has them has the generation's.  [provenance] is for people.  Whatever is wrong is one line that names its key.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from meshes.devices.chip import Chip, Figure, Figures
from meshes.process.documents import name_unknown_key, read_toml
from meshes.process.errors import MeshError
from meshes.process.log import note_once
from meshes.process.one_line import quote

Table = Mapping[str, Any]

STANDINGS = ("measured", "published", "derived", "assumed")
_PER_BYTE = ("pJ/bit", "pJ/byte")
SCHEMA: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "sheet": {
            "bf16_flops": ("FLOP/s",), "hbm_bytes": ("byte",), "hbm_bytes_per_s": ("byte/s",),
            "ici_link_bytes_per_s": ("byte/s",), "clock_hz": ("Hz",),
        },
        "time": {
            "dispatch_s": ("s",), "clock_hz": ("Hz",), "cycle_factor": ("×",), "copy_bytes_per_cycle": ("byte/cycle",),
            "window_cycles": ("cycle",), "matrix_flops_per_s": ("FLOP/s",), "vector_ops_per_s": ("op/s",),
            "memory_bytes_per_s": ("byte/s",), "hbm_reach": ("of sheet",), "launch_s": ("s",), "hop_s": ("s",),
            "link_bytes_per_s": ("byte/s",), "chip_bytes_per_s": ("byte/s",), "dcn_launch_s": ("s",),
            "dcn_bytes_per_s": ("byte/s", "byte/s a chip"),
        },
        "energy": {
            "matrix": ("pJ/FLOP",), "vector": ("pJ/op",), "memory": _PER_BYTE, "ici": _PER_BYTE, "dcn": _PER_BYTE,
            "static": ("W",), "core_share": ("of static",),
        },
    }
)  # fmt: skip
"""Part -> key -> the units that it may have; docs/calibration.md says what each is."""
_SLICE = ("torus_dims", "wrap_multiple", "full_cubes", "cores", "devices", "slices", "largest_side", "device_kinds")
_ORIGIN = ("source", "standing")
_FIGURE = ("value", "low", "high", "unit", *_ORIGIN)
_KEYS = ("name", "generation", "calibrated-on", "provenance", "slice", *SCHEMA, "voltage")
_RANGES = {"energy": (0.0, 1e9), "s": (0.0, 1e30), "of static": (0.0, 1.0), "": (1e-30, 1e30)}
"""By part or unit: the least and the most.  Work and a latency can be nothing; a rate, or a factor of time, cannot."""


def read_chip(path: Path, base: Chip | None = None) -> Chip:
    """A user's file, over the chip of the generation that it is for; without one, the file of a generation itself.

    `OSError` where it can't be opened, `MeshError`, one line, where it holds anything else.
    """
    try:
        table = read_toml(path)
    except MeshError as error:
        raise MeshError(f"{path} is {error}") from None
    try:
        chip = parse_chip(table, base, name=path.stem)
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None
    if "core_share" in table.get("voltage", {}):
        note_once(f"{path}: core_share of [voltage] is [energy.core_share] now, a figure with value and unit")
    return chip


def parse_chip(table: Table, base: Chip | None = None, *, name: str) -> Chip:
    """The same of a table.  name: where it has none.  `MeshError`, which names the key."""
    _check_keys(table, _KEYS, "")
    generation = base.name if base else name
    meant = _text(table, "generation", generation)
    if meant != generation:
        raise MeshError(f"generation: this file is of {quote(meant)}, the chips are {generation}")
    title, voltage = _text(table, "name", name), dict(_table(table, "voltage", "gamma or points"))
    parts: dict[str, Any] = {part: _read_part(table, part, title) for part in SCHEMA}
    if "core_share" in voltage:
        share = {"value": voltage.pop("core_share"), "unit": "of static"}
        parts["energy"]["core_share"] = _read_figure(share, "voltage.core_share", "energy", ("of static",), title)
    of_slice = _read_slice(table)
    if base is None:
        return Chip(name=generation, title=title, **parts, **of_slice, voltage=voltage)
    _check_compiled(parts["sheet"], of_slice, base)
    if {"hbm_reach", "memory_bytes_per_s"} <= set(_table(table, "time", "")):
        raise MeshError("time: hbm_reach or memory_bytes_per_s, not both: one is the other ÷ the data sheet's")
    old = {part: getattr(base, part) for part in SCHEMA}
    own = {f"{part}.{key}" for part, rows in parts.items() for key, row in rows.items() if row != old[part].get(key)}
    return Chip(
        name=generation,
        title=title,
        calibrated_on=_text(table, "calibrated-on", ""),
        voltage=voltage,
        own=frozenset(own),
        **{part: old[part] | rows for part, rows in parts.items()},
        **{key: getattr(base, key) for key in _SLICE},
    )


def _check_compiled(sheet: Figures, of_slice: Table, base: Chip) -> None:
    said = {f"slice.{key}": (value, getattr(base, key)) for key, value in of_slice.items()}
    if "hbm_bytes" in sheet:
        said["sheet.hbm_bytes"] = sheet["hbm_bytes"].value, base.hbm_bytes
    for place, (value, known) in said.items():
        if value != known:
            raise MeshError(f"{place}: programs are compiled for {base.name}, which has {known}, not {quote(value)}")


def _read_slice(table: Table) -> dict[str, Any]:
    rows = _table(table, "slice", ", ".join(_SLICE))
    _check_keys(rows, (*_SLICE, *_ORIGIN), "slice.")
    return {key: tuple(row) if isinstance(row, list) else row for key, row in rows.items() if key in _SLICE}


def _read_part(table: Table, part: str, title: str) -> dict[str, Figure]:
    known = SCHEMA[part]
    rows = _table(table, part, ", ".join(known))
    _check_keys(rows, tuple(known), f"{part}.")
    return {key: _read_figure(row, f"{part}.{key}", part, known[key], title) for key, row in rows.items()}


def _read_figure(row: object, place: str, part: str, known: tuple[str, ...], title: str) -> Figure:
    if not isinstance(row, dict):
        raise MeshError(f"{place}: a table with value and unit, not {quote(row)}")
    _check_keys(row, _FIGURE, f"{place}.")
    units, unit = " or ".join(known), row.get("unit")
    if unit not in known:
        said = f"{quote(unit)} is not its unit" if "unit" in row else "missing"
        raise MeshError(f"{place}.unit: {said}; it is {units}")
    if "value" not in row:
        raise MeshError(f"{place}.value: missing; a number ({units})")
    limits = _RANGES.get(unit) or _RANGES.get(part) or _RANGES[""]
    value = _number(row["value"], f"{place}.value", units, limits)
    low, high = (_number(row.get(end, value), f"{place}.{end}", units, limits) for end in ("low", "high"))
    if not low <= value <= high:
        raise MeshError(f"{place}: low ≤ value ≤ high, not {low:g}, {value:g} and {high:g}")
    standing = row.get("standing", "assumed")
    if standing not in STANDINGS:
        raise MeshError(f"{place}.standing: one of {', '.join(STANDINGS)}, not {quote(standing)}")
    source = _text(row, "source", title, f"{place}.")
    return Figure(value=value, low=low, high=high, unit=unit, source=source, standing=standing)


def _number(value: object, place: str, units: str, limits: tuple[float, float]) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise MeshError(f"{place}: {quote(value)} is no number ({units})")
    least, most = limits
    if not least <= value <= most:
        span = f"from 0 to {most:g}" if least == 0 else f"more than 0, at most {most:g}"
        raise MeshError(f"{place}: {quote(value)} is out of range; {span} ({units})")
    return float(value)


def _table(table: Table, key: str, keys: str) -> Table:
    rows = table.get(key, {})
    if not isinstance(rows, dict):
        raise MeshError(f"{key}: a table of {keys}, not {quote(rows)}")
    return rows


def _check_keys(table: Table, known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            raise MeshError(name_unknown_key(key, known, place))


def _text(table: Table, key: str, default: str, place: str = "") -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or (key in table and not value.strip()):
        raise MeshError(f"{place}{key}: a word, not {quote(value)}")
    return value
