"""The verbs of the layout on eight devices, and what they refuse: `python verbs.py` prints JSON."""

import json
import os
from collections.abc import Callable
from typing import Any

from meshes.case import Case
from meshes.twins.layout import partition_axes
from torchxla_impl.process.start import start

STREAMS = (("tp8", "prefill"), ("tp8+sp", "prefill"), ("tp8+sp", "decode"), ("cp2tp4+sp", "prefill"))


def refusal(act: Callable[[], Any]) -> str:
    from meshes.twins.layout import LayoutError

    try:
        act()
    except LayoutError as error:
        return str(error)
    return "nothing was refused"


def main() -> dict[str, Any]:
    start(num_devices=8)
    import torch
    import torch_xla

    from torchxla_impl.decoder.step import merge_microbatches, split_microbatches
    from torchxla_impl.sharding.create import layout_on_devices
    from torchxla_impl.sharding.layout import STREAM, Layout
    from torchxla_impl.sharding.lowering import format_sharding, shard

    def on(mesh: str, phase: str = "prefill", **words: Any) -> Layout:
        return layout_on_devices(Case.read(mesh, model_name="tiny", phases=(phase,), **words))

    layout, stages, single, parts = on("dp2pp2tp2"), on("pp4tp2"), on("tp8"), on("pp2cp2tp2+sp")
    device = torch_xla.device()
    state = shard(stages, (torch.arange(4.0) + 1).reshape(4, 1, 1, 1), "stages batch seq embed")
    chosen = torch.arange(2 * 4 * 3, dtype=torch.int32).reshape(2, 4, 3, 1).to(device)
    of_parts = torch.arange(2 * 2 * 3 * 2, dtype=torch.int32).reshape(2, 2, 3, 2).to(device)
    taken = torch.full((1, 1, 1, 1), 9.0).to(device)
    scores = torch.tensor([[0.0, 3.0, 1.0], [5.0, 2.0, 5.0]]).reshape(1, 2, 1, 1, 3).to(device)
    # Of two stages: the last tokens of 2 parts of a sequence, each on two shards.
    ends = torch.arange(8.0).reshape(1, 2, 1, 4, 1).to(device)
    dealt = split_microbatches(torch.arange(6)[:, None], slots=2)
    return {
        "specs": {
            dims: partition_axes(dims, case=layout.case)
            for dims in ("batch", "stages batch seq embed", "vocab embed", "")
        },
        "streams": {f"{mesh} {phase}": partition_axes(STREAM, case=on(mesh, phase).case) for mesh, phase in STREAMS},
        "sharding": {dims: format_sharding(layout, dims) for dims in ("embed", "vocab embed", "stages batch seq ffn")},
        "sharding of several": format_sharding(on("dp2cp2tp2"), "groups embed"),
        "rank": refusal(lambda: layout.place(torch.zeros((1,) * 6), "layers stages batch seq heads head_dim")),
        "dims": refusal(lambda: layout.place(torch.zeros((2, 2, 2)), "batch seq")),
        "devices": refusal(lambda: on("dp16", batch=16)),
        "shift": stages.shift(state, taken, tick=0).cpu().ravel().tolist(),
        "shift of one": single.shift(torch.zeros(1, 1, 1, 1).to(device), taken, tick=0).cpu().ravel().tolist(),
        "last": parts.last_tokens(ends).cpu().ravel().tolist(),
        "last of decode": on("tp8+sp", "decode").last_tokens(ends[..., :1, :]).cpu().ravel().tolist(),
        "collect": stages.collect(chosen).cpu().tolist(),
        "collect parts": parts.collect(of_parts).cpu().tolist(),
        "collect of one": single.collect(chosen[:, :1]).cpu().tolist(),
        "sample": stages.sample(scores).cpu().ravel().tolist(),
        "dealt": dealt[..., 0].tolist(),
        "taken back": merge_microbatches(dealt[..., 0]).tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
    # All is said; taking torch_xla down again would cost more than a second.
    os._exit(0)
