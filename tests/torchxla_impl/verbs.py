"""The verbs of the layout on eight devices, and what they refuse: `python verbs.py` prints JSON."""

import json
from collections.abc import Callable
from typing import Any

from meshes.case import Case
from torchxla_impl.start import start


def refusal(act: Callable[[], Any]) -> str:
    from torchxla_impl.layout import LayoutError

    try:
        act()
    except LayoutError as error:
        return str(error)
    return "nothing was refused"


def main() -> dict[str, Any]:
    start(num_devices=8)
    import torch
    import torch_xla

    from torchxla_impl.layout import Layout
    from torchxla_impl.step import microbatches, sequences

    layout = Layout.on_devices(Case.read("dp2pp2tp2", model_name="tiny"))
    stages = Layout.on_devices(Case.read("pp4tp2", model_name="tiny"))
    single = Layout.on_devices(Case.read("tp8", model_name="tiny"))
    device = torch_xla.device()
    state = stages.shard((torch.arange(4.0) + 1).reshape(4, 1, 1, 1), "stages batch seq embed")
    chosen = torch.arange(2 * 4 * 3, dtype=torch.int32).reshape(2, 4, 3).to(device)
    taken = torch.full((1, 1, 1), 9.0).to(device)
    scores = torch.tensor([[0.0, 3.0, 1.0], [5.0, 2.0, 5.0]]).reshape(1, 2, 1, 3).to(device)
    dealt = microbatches(torch.arange(6)[:, None], slots=2)
    return {
        "specs": {dims: layout.spec(dims) for dims in ("batch", "stages batch seq embed", "vocab embed", "")},
        "sharding": {dims: layout.sharding(dims) for dims in ("embed", "vocab embed", "stages batch seq ffn")},
        "rank": refusal(lambda: layout.place(torch.zeros((1,) * 6), "layers stages batch seq heads head_dim")),
        "dims": refusal(lambda: layout.place(torch.zeros((2, 2, 2)), "batch seq")),
        "devices": refusal(lambda: Layout.on_devices(Case.read("dp16", model_name="tiny", batch=16))),
        "shift": stages.shift(state, taken).cpu().ravel().tolist(),
        "shift of one": single.shift(torch.zeros(1, 1, 1, 1).to(device), taken).cpu().ravel().tolist(),
        "collect": stages.collect(chosen).cpu().tolist(),
        "sample": stages.sample(scores.expand(1, 2, 1, 3)).cpu().ravel().tolist(),
        "dealt": dealt[..., 0].tolist(),
        "taken back": sequences(dealt[..., 0]).tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(main()))
