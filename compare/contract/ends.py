"""What the ends of a step and its pipeline move: embedding, shift, head, choice, collection of ids."""

from compare.contract.row import BOTH, INTEGERS, ContractRow
from compare.contract.symbols import Letters, row

VOCABULARY = "vocabulary-parallel embedding, arXiv:1909.08053 §3"
SCATTERED = "vocabulary-parallel embedding under sequence parallelism, arXiv:2205.05198 §4.2.2"
GREEDY = "greedy choice over a split vocabulary: one winner of each shard"
GPIPE = "GPipe, arXiv:1811.06965 §2"
COLLECT = "the chosen ids return to the stage that embeds them"
LAST_PART = "the last part of a sequence chose; every rank of the next step needs the ids"


def embed_row(n: Letters) -> ContractRow:
    """Each device looks up the ids of its part of the vocabulary; the parts are summed."""
    kind = "reduce-scatter" if n.scattered else "all-reduce"
    return row(
        n, scope="embed", kind=kind, axis="tp", executions=1, payload=n.m * n.hidden, devices=n.stage("first"),
        formula=f"m·t·D·b = {n.m}·{n.t}·{n.embed}·{n.b}, {n.spelled('tp', kind)}{n.at(which='first')}",
        source=SCATTERED if n.scattered else VOCABULARY,
    )  # fmt: skip


def shift_row(n: Letters) -> ContractRow:
    """Every stage but the last hands its activations on, once a microbatch; of a split stream its own part."""
    stages, ways = n.size("pp"), n.size("tp") if n.scattered else 1
    split, parts = ("/tp", f"/{ways}") if n.scattered else ("", "")
    return row(
        n, scope="pipeline.shift", kind="collective-permute", axis="pp",
        executions=n.m, payload=n.hidden // ways, devices=n.devices(pp=range(stages - 1)),
        formula=f"m = {n.m} times t·D·b{split} = {n.t}·{n.embed}·{n.b}{parts}, from {stages - 1} of {stages} stages",
        source=GPIPE,
    )  # fmt: skip


def head_row(n: Letters) -> ContractRow:
    """Of a stream that tp splits the tokens whose successors are chosen are made whole."""
    return row(
        n, scope="head", kind="all-gather", axis="tp", executions=1, payload=n.batch * n.embed * n.b,
        devices=n.chooser(), vocab=n.vocab,
        formula=f"B_local·D·b = {n.batch}·{n.embed}·{n.b}, {n.spelled('tp', 'all-gather')}{n.at(which='last')}",
        source="Megatron sequence parallelism, arXiv:2205.05198 §4.2.2, of the last tokens alone",
    )  # fmt: skip


def sample_row(n: Letters) -> ContractRow:
    """The winner of each shard of the vocabulary, its value and its id, to all shards."""
    shards = n.size("tp")
    return row(
        n, scope="sample", kind="all-gather", axis="tp", executions=1, payload=shards * n.batch * (n.b + 4),
        devices=n.chooser(), carries=BOTH,
        formula=f"tp·B_local·(b+4) = {shards}·{n.batch}·({n.b}+4), {n.spelled('tp', 'all-gather')}"
                f"{n.at(which='last')}",
        source=GREEDY,
    )  # fmt: skip


def collect_row(n: Letters) -> ContractRow:
    """The ids that the last stage chose go to the first, which embeds them next."""
    rank = n.at(which="last").partition(" stages")[2]
    return row(
        n, scope="pipeline.collect", kind="collective-permute", axis="pp", executions=1, payload=n.batch * 4,
        devices=n.chooser(), carries=INTEGERS,
        formula=f"B_local·4 = {n.batch}·4, from the last of {n.size('pp')} stages to the first{rank}",
        source=COLLECT,
    )  # fmt: skip


def spread_row(n: Letters) -> ContractRow:
    """In prefill the ids that the last cp rank chose go to the others, which embed them next, too."""
    return row(
        n, scope="pipeline.collect", kind="collective-broadcast", axis="cp", executions=1, payload=n.batch * 4,
        devices=n.stage("first"), carries=INTEGERS,
        formula=f"B_local·4 = {n.batch}·4 from the last of {n.size('cp')} cp ranks, "
                f"{n.spelled('cp', 'collective-broadcast')}{n.at(which='first')}",
        source=LAST_PART,
    )  # fmt: skip
