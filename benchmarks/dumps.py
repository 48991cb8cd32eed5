"""`python -m benchmarks.dumps DIR`: MaxText's decode steps, from dumps of HLO, held against the contract.

The files are public (ROCm/xla, branch rocm-dev-infra, `perf_tools/hlo_eval_tools`), and not shipped: HLO from before
the optimisations, as MaxText on eight GPUs dumped it.  Each is compiled for a v5e:2x4, and judged with the scope map
below.  The table is the one in docs/witnesses.md.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from compare import collectives, contract_rows, judge
from compare.diff.own.program_verdict import ProgramVerdict
from compare.render.units import bytes_text

MAXTEXT = {
    r"layers/wo/": "layer.moe.combine",
    r"layers/wi_": "layer.moe.experts",
    r"Attention\.out_projection": "layer.attention.out",
    r"Attention\.(query|key|value|kv|qkv)_projection": "layer.attention.qkv",
    r"AttentionOp": "layer.attention.core",
    r"GateLogit": "layer.moe.route",
    r"linears\.py:529": "layer.mlp.down",
    r"MlpBlock": "layer.mlp.up",
    r"apply_output_head": "head",
    r"_apply_embedding": "embed",
    r"RMSNorm": "norm",
}
"""Which function of MaxText, or which path, is which part of the model."""
GPT_OSS = {
    "model_type": "gpt_oss",
    "architectures": ["GptOssForCausalLM"],
    "torch_dtype": "bfloat16",
    "vocab_size": 201088,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 150000,
    "tie_word_embeddings": False,
    "attention_bias": True,
}


@dataclass(frozen=True, slots=True)
class Dump:
    """A decode step of eight sequences, of a preset or of a config."""

    name: str
    file: str
    model: str = ""
    config: dict[str, object] = field(default_factory=dict)


DUMPS = (
    Dump("MaxText, Llama-3-8B", "maxtext_llama3_8b_generate_8gpu.before_optimizations.hlo.gz", model="llama-3.1-8b"),
    Dump("MaxText, GPT-OSS-20B", "maxtext_gpt_oss_20b_generate_8gpu.before_optimizations.hlo.gz", config=GPT_OSS),
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dumps", description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path)
    folder = parser.parse_args(argv).folder
    print("| program, tp8, decode | emitted | emitted ÷ inherent | beyond the plan | most of it |")
    print("|---|---|---|---|---|")
    for dump in DUMPS:
        verdict = judge_dump(folder / dump.file, dump)
        beyond = verdict.totals["inflated"] + verdict.totals["induced"]
        emitted = verdict.totals["wire_bytes"]
        most = "; ".join(f"{bytes_text(amount)} {words}" for words, amount in causes(verdict).most_common(3))
        cells = (dump.name, bytes_text(emitted), f"{verdict.emitted_over_inherent:.2f} ×", bytes_text(beyond), most)
        print(f"| {' | '.join(cells)} |")
    return 0


def judge_dump(path: Path, dump: Dump) -> ProgramVerdict:
    case = {"phase": "decode", "batch": 8, "seq": 1024}
    if dump.model:
        rows = contract_rows("tp8", model=dump.model, **case)
    else:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(dump.config))
            rows = contract_rows("tp8", checkpoint=folder, **case)
    return judge(collectives(path, mesh="tp8", topology="v5e:2x4", scopes=MAXTEXT), rows)


def causes(verdict: ProgramVerdict) -> Counter[str]:
    """Bytes of each cause, with the part of the model."""
    amounts: Counter[str] = Counter()
    for row in verdict.rows:
        for cause, amount in row.causes.items():
            scope = max(row.collective.operands, key=lambda operand: operand.payload_bytes).scope
            amounts[f"{cause} ({row.collective.kind} in {scope})"] += amount
    return amounts


if __name__ == "__main__":
    sys.exit(main())
