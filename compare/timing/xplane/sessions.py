"""Which files make one profile: all hosts' of one session, as TensorBoard lays them out."""

from pathlib import Path

from compare.timing.errors import TimingError

_ENDINGS = ("*.xplane.pb", "*.xplane.pb.gz")
_SHOWN = 5


def profile_files(path: str | Path) -> list[Path]:
    """The files of the one session at, or anywhere below, a folder; or one file.

    `TimingError` where there is none, or more than one session.
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    found = sorted({file for ending in _ENDINGS for file in path.rglob(ending)})
    sessions = sorted({file.parent for file in found})
    if not sessions:
        traces = list(path.rglob("*.trace.json.gz"))
        more = "; a trace.json.gz leaves out too much" if traces else ""
        raise TimingError(f"{path}: no profile in this folder (no *.xplane.pb at any depth){more}")
    if len(sessions) > 1:
        named = ", ".join(str(folder) for folder in sessions[:_SHOWN])
        rest = f" and {len(sessions) - _SHOWN} more" if len(sessions) > _SHOWN else ""
        raise TimingError(f"{path}: {len(sessions)} sessions; name one of them: {named}{rest}")
    return found
