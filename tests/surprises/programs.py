"""The programs of docs/surprises, lowered in one process a framework and compiled in one: `python -m … OUT FILE…`.

Each function of a file that takes nothing is a program; its StableHLO or HLO, and then its compiled text, is written to
OUT/<file>.<function>.
"""

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "docs" / "surprises"
TOPOLOGY = "v5e:2x4"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions(module: ModuleType) -> Iterator[Callable]:
    """Its programs, in the order of the file."""
    for value in vars(module).values():
        if (
            inspect.isfunction(value)
            and value.__module__ == module.__name__
            and not inspect.signature(value).parameters
        ):
            yield value


def lower(out: Path, names: list[str]) -> None:
    for name in names:
        module = load(name)
        for function in functions(module):
            built = function()
            data = built if isinstance(built, bytes) else built.as_text(debug_info=True).encode()
            (out / f"{name}.{function.__name__}.before").write_bytes(data)
        (out / f"{name}.axes").write_text(json.dumps(module.AXES))


def compile_all(out: Path) -> None:
    """libtpu, ahead of time; many small programs in one process."""
    from compare.compile import compiler, to_stablehlo

    compiler.start()
    devices = compiler.list_devices(TOPOLOGY)
    for file in sorted(out.glob("*.before")):
        program = to_stablehlo.convert_to_stablehlo(file.read_bytes())
        options = compiler.build_options(program.compile_options(len(devices)), devices)
        module = compiler.parse_stablehlo(program.bytecode)
        (hlo,) = compiler.compile_module(module, ordered=devices, options=options).hlo_modules()
        file.with_suffix(".hlo").write_text(hlo.to_string())


if __name__ == "__main__":
    place, *wanted = sys.argv[1:]
    if wanted:
        lower(Path(place), wanted)
    else:
        compile_all(Path(place))
