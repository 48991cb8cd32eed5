"""Time small programs on this machine's devices: `python -m jax_impl.microbenchmarks REQUEST.json OUTDIR`.

REQUEST: `platform` (cpu, gpu, tpu), `num_devices` (of cpu), `seconds` (of a window), `repeats`, and `programs`: each
with `name`, `kind`, `depth`, `dtype`, and `size`, or `bytes` and `ops` or `devices`.  Idle windows are measured where
the device tells its energy.  Writes OUTDIR/windows.json, the device and the windows; OUTDIR/N.hlo, program number N as
it was compiled; on TPUs profiles of the windows, with their power.
One JSON line on stdout for each program.  Exit 0; 2: the request cannot be met, and the last line on stderr says why.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from meshes.process.command_line import REFUSED
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.last_word import claim_stderr, refuse
from meshes.process.one_line import one_line

PLATFORMS = ("cpu", "gpu", "tpu")
ALL = 0
"""Devices of a collective: as many as there are."""
MOST_CALLS = 20_000
"""Of a program in one window."""


def measure(request: dict[str, Any], out: Path) -> dict[str, Any]:
    """The device, and each program's windows; a program that fails has its error."""
    import jax

    from jax_impl.microbenchmarks.kernels import make_kernel
    from jax_impl.microbenchmarks.meter import find_meter

    devices = jax.devices()
    meter = find_meter(request["platform"], num_devices=len(devices), out=out)
    programs = []
    for number, program in enumerate(request["programs"]):
        print(json.dumps({"stage": program["name"]}), flush=True)
        size = program.get("devices", 1)
        if size > len(devices) or (size == ALL and len(devices) < 3):
            continue  # of all where that is one, or two, which were measured
        try:
            function, arguments = make_kernel({**program, "devices": size or len(devices)})
            compiled = function.lower(*arguments).compile()
        # Not narrower: what a device has no memory or no kernel for differs by platform; others are measured still.
        except Exception as error:
            programs.append({"number": number, "error": one_line(f"{type(error).__name__}: {error}")})
            continue
        (out / f"{number}.hlo").write_text(compiled.as_text() or "", encoding="utf-8")
        # Several calls of a program with collectives under way block each other's threads on a CPU.
        one_at_a_time = request["platform"] == "cpu"
        windows = _measure_program(compiled, arguments, request, meter, one_at_a_time=one_at_a_time)
        programs.append({"number": number, "windows": windows})
    idle = [_idle(request["seconds"], meter) for _ in range(request["repeats"])] if meter.name else []
    return {"device": _describe(devices, request["platform"], meter.name), "programs": programs, "idle": idle}


def _measure_program(
    compiled: Any, arguments: Any, request: dict[str, Any], meter: Any, *, one_at_a_time: bool
) -> list[dict[str, Any]]:
    """Windows of so many calls that each lasts about the seconds of the request."""
    _seconds(compiled, arguments, 2, one_at_a_time=one_at_a_time)
    once = _seconds(compiled, arguments, 2, one_at_a_time=one_at_a_time) / 2
    calls = min(max(1, round(request["seconds"] / once)), MOST_CALLS)
    windows = []
    for _ in range(request["repeats"]):
        meter.begin()
        seconds = _seconds(compiled, arguments, calls, one_at_a_time=one_at_a_time)
        windows.append({"calls": calls, "time_s": seconds, **meter.end()})
    return windows


def _seconds(compiled: Any, arguments: Any, calls: int, *, one_at_a_time: bool) -> float:
    import jax

    begin = time.perf_counter()
    for _ in range(calls):
        result = compiled(*arguments)
        if one_at_a_time:
            jax.block_until_ready(result)
    jax.block_until_ready(result)
    return time.perf_counter() - begin


def _idle(seconds: float, meter: Any) -> dict[str, Any]:
    begin = time.perf_counter()
    meter.begin()
    time.sleep(seconds)
    elapsed = time.perf_counter() - begin
    return {"calls": 0, "time_s": elapsed, **meter.end()}


def _describe(devices: list[Any], platform: str, meter: str) -> dict[str, Any]:
    first = devices[0]
    packages = {"jax": version("jax"), "jaxlib": version("jaxlib")}
    return {
        "platform": platform,
        "kind": first.device_kind,
        "num_devices": len(devices),
        "num_cores": os.cpu_count(),
        "coords": [[*getattr(each, "coords", ()), getattr(each, "core_on_chip", 0)] for each in devices]
        if platform == "tpu"
        else [],
        "runtime": one_line(first.client.platform_version),
        "versions": packages,
        "meter": meter,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        refuse("usage: python -m jax_impl.microbenchmarks REQUEST.json OUTDIR")
        return REFUSED
    try:
        request, out = read_json(Path(argv[0])), Path(argv[1])
        _start(request)
        measured = measure(request, out)
    except MeshError as error:
        refuse(error)
        return REFUSED
    except (OSError, ValueError, KeyError, TypeError) as error:
        refuse(f"cannot measure: {error!r}")
        return REFUSED
    except ImportError as error:
        refuse(f"JAX can't be imported: {error}")
        return REFUSED
    except RuntimeError as error:
        refuse(f"no {request['platform'].upper()} that can be measured: {one_line(error)}")
        return REFUSED
    (out / "windows.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    return 0


def _start(request: dict[str, Any]) -> None:
    """Bring up the devices; none may be in use."""
    platform = request["platform"]
    if platform not in PLATFORMS:
        raise ValueError(f"platform {platform!r}; choose from {', '.join(PLATFORMS)}")
    if platform == "gpu":
        # Which plugin there is, CUDA's or ROCm's, JAX finds out.
        os.environ.pop("JAX_PLATFORMS", None)
        import jax

        if jax.default_backend() != "gpu":
            raise MeshError("no GPU is attached to this machine, or JAX has no plugin for it")
        return
    from jax_impl.process.start import start

    start(platform=platform, num_devices=request.get("num_devices", 1))


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
