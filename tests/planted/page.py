"""docs/planted.md, made from the table."""

from collections.abc import Iterator

from tests.planted.defect import ARMS, Defect, Row, Site, amount
from tests.planted.table import CHAPTERS, DEFECTS, SETTINGS, changes

TITLES = {"jax": "JAX", "torchxla": "TorchXLA"}

HEAD = """\
# Planted defects: does the tool find what was put in?

This page is made from the table in `tests/planted` (`python -m tests.planted > docs/planted.md`), and the table is a
test. Each entry changes **one line** of a twin. The collectives of the changed program, and what the tool must say of
them, were worked out by hand from [definitions.md](definitions.md); libtpu then compiles the changed twin, and

* every collective that is new, gone or changed must be there as often and with as many bytes as written here, with this
  verdict and cause, and all others must be as in the twin as it is;
* what the plan asks for and nothing serves any more must be reported;
* the line is among the first three differences of the report: the planted line, if it is an operation or a pin; for a
  declaration or a rule it is the first operation that uses it, which is then named below. (For a pin that the
  partitioner carries out at the operation before it, the compiled program has only that operation's line, which is
  named below, too);
* where the same defect is planted in both arms, all of it is `common`, and none of it is a framework's.

Where the compiler did something unexpected with a line (it removes a gather whose result is only cut again, it sends a
value before it is widened), the table was corrected, with the reason. No verdict was ever copied from the tool.

Verdicts are bytes a step, mean over the devices: executions · wire factor · payload. Over n devices the wire factor is
(n−1)/n; for an all-reduce it is 2(n−1)/n, for a permute the fraction of the devices that send. Attention is written as
einsum in both arms. JAX is partitioned by Shardy, or by GSPMD where a defect is planted in both arms. The style is
`pinned`, except in the chapter on collectives written by hand.
"""


def page() -> str:
    return "\n".join([HEAD, *_settings(), *(line for chapter in CHAPTERS for line in _chapter(chapter))])


def _settings() -> Iterator[str]:
    harmful = sum(1 for defect, _ in changes() if not defect.harmless)
    yield f"{len(changes())} changes, {harmful} of them defects and {len(changes()) - harmful} harmless, in\n"
    for setting in SETTINGS.values():
        model = setting.model
        yield (
            f"* **{setting.name}** on `{setting.mesh}`: {setting.numbers}"
            + (
                ""
                if model.name.startswith("llama")
                else f"; embed {model.embed}, {_feed_forward(setting.model)}, "
                f"{model.heads} heads and {model.kv_heads} KV heads of {model.head_dim}, vocabulary {model.vocab}, "
                f"{model.layers} layers, 2 bytes an element"
            )
            + "."
        )
    yield ""


def _feed_forward(model: object) -> str:
    ffn, experts = getattr(model, "ffn", 0), getattr(model, "expert_ffn", 0)
    return f"ffn {ffn}" if ffn else f"ffn {experts} of each expert"


def _chapter(chapter: str) -> Iterator[str]:
    yield f"## {chapter}\n\n{CHAPTERS[chapter]}\n"
    for defect in DEFECTS:
        if defect.chapter == chapter:
            yield from _defect(defect)


def _defect(defect: Defect) -> Iterator[str]:
    yield f"**{defect.name}** ({defect.setting.name}, {defect.phase}): {defect.what}.\n"
    yield "```diff"
    for arm, site in defect.sites.items():
        yield f"# {TITLES[arm]}: {ARMS[arm]}/{site.file}"
        yield f"-{site.old}"
        yield f"+{site.new}"
    yield "```\n"
    if defect.harmless:
        return
    yield "| scope | collective | times | bytes sent, each | verdict | bytes a step |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in defect.rows:
        yield from _rows(row)
    yield from (f"| `{scope}` | {collective} | – | | gone | |" for scope, collective in defect.gone)
    for name, text in defect.unserved.items():
        scope, _, collective = name.rpartition(" ")
        yield f"| `{scope}` | {collective} of the plan | | | unserved | {_bytes(text)} |"
    yield ""
    reported = [
        f"{TITLES[arm]}: `{ARMS[arm]}/{site.reported[0]}`: `{site.reported[1]}`"
        for arm, site in _reported_sites(defect)
    ]
    yield from ([f"Reported at {'; '.join(reported)}.\n"] if reported else [])
    yield from ([f"{defect.why}\n"] if defect.why else [])


def _reported_sites(defect: Defect) -> list[tuple[str, Site]]:
    return [(arm, site) for arm, site in defect.sites.items() if site.reported[0]] if defect.extra else []


def _rows(row: Row) -> Iterator[str]:
    first = f"| `{row.scope}` | {row.collective} | {row.times} | {row.moves} |"
    if isinstance(row.verdict, str):
        yield f"{first} {row.verdict} | {row.step_bytes:,} |"
        return
    for number, (name, text) in enumerate(row.verdict.items()):
        yield f"{first if not number else '| | | | |'} {name} | {_bytes(text)} |"


def _bytes(text: str) -> str:
    return f"{text} = {amount(text):,}"
