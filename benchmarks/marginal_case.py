"""`python -m benchmarks.marginal_case`: does a faster scale-out network save the energy of a training step?

The case of a talk, *Enabling energy efficiency for distributed machine learning* (AstraWattch): LLaMA-2-70B trained on
Switch(8)-Ring(4) of H100, 700 W active and 80 W idle, 2 pJ/bit at 400 GB/s within a switch, 25 pJ/bit at 50 GB/s
between.  Its layout, batch and sequence are not known: these are ours.  Everything is arithmetic; nothing is compiled.
Writes docs/marginal/cases.csv, its figure, and the tables of docs/marginal/README.md.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.measuring import fill_tables
from compare.render.figures import INK, STYLE, draw_heading, heading_inches, save_figure
from compare.render.picture import Picture
from meshes.process import atomic_files

FOLDER = Path(__file__).parent.parent / "docs" / "marginal"

LAYERS, HIDDEN, KV, FFN, VOCAB = 80, 8192, 1024, 28672, 32000
"""LLaMA-2-70B: 64 heads of 128, 8 of them for keys and values."""
BLOCKS = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * KV + 3 * HIDDEN * FFN + 2 * HIDDEN) + HIDDEN
PARAMETERS = BLOCKS + 2 * VOCAB * HIDDEN
SEQUENCE, TP, DP = 4096, 8, 4
PEAK, UTILISATION = 989.4e12, 0.5
"""H100 SXM, dense bf16, by its data sheet; the share of it that is reached while it computes is assumed."""
ACTIVE_W, IDLE_W = 700.0, 80.0
STEP = 0.01
COMPUTE, SCALE_UP, SCALE_OUT = "compute", "scale-up network", "scale-out network"
SEQUENCES = (1, 4, 16, 64, 256)
"""Of a replica in a step, one after the other."""
HIDDEN_SHARES = (0.0, 0.25, 0.5, 0.75, 0.875, 1.0)
GAMMAS = (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Network:
    """One tier: bytes that a GPU sends in a step, at a rate, for an energy."""

    sent_bytes: float
    bytes_per_s: float
    pj_per_bit: float
    hidden: float
    """The share of its time that passes behind compute."""

    @property
    def seconds(self) -> float:
        return self.sent_bytes / self.bytes_per_s

    @property
    def joules(self) -> float:
        return self.sent_bytes * 8 * self.pj_per_bit * 1e-12

    @property
    def watts(self) -> float:
        """While it sends."""
        return self.bytes_per_s * 8 * self.pj_per_bit * 1e-12


@dataclass(frozen=True, slots=True)
class Case:
    """One step, of one GPU; all 32 do the same."""

    compute_s: float
    up: Network
    out: Network
    gamma: float

    def seconds(self, speeds: Mapping[str, float]) -> float:
        up, out = (net.seconds * (1 - net.hidden) for net in (self.up, self.out))
        return self.compute_s / speeds[COMPUTE] + up / speeds[SCALE_UP] + out / speeds[SCALE_OUT]

    def joules(self, speeds: Mapping[str, float]) -> float:
        """Idle power all the time, and what each part spends, which grows with its voltage squared."""
        spent = self.dynamic
        return IDLE_W * self.seconds(speeds) + sum(
            spent[part] * (1 - self.gamma * (1 - speed)) ** 2 for part, speed in speeds.items()
        )

    @property
    def dynamic(self) -> dict[str, float]:
        return {
            COMPUTE: (ACTIVE_W - IDLE_W) * self.compute_s,
            SCALE_UP: self.up.joules,
            SCALE_OUT: self.out.joules,
        }

    def marginal(self, part: str) -> float:
        """−d ln E / d ln s of one part, by a central difference of ±1 %."""
        ends = [self.joules({**NOMINAL, part: 1 + sign * STEP}) for sign in (-1, 1)]
        return -log(ends[1] / ends[0]) / log((1 + STEP) / (1 - STEP))


NOMINAL = {COMPUTE: 1.0, SCALE_UP: 1.0, SCALE_OUT: 1.0}


def build_case(sequences: int, *, hidden: float, gamma: float) -> Case:
    """sequences: of a replica in a step.  hidden: the share of the scale-out network's time."""
    return Case(compute_seconds(sequences), scale_up(sequences), replace(scale_out(), hidden=hidden), gamma)


def compute_seconds(sequences: int) -> float:
    """Forward and twice that backward: 6 FLOPs a parameter and token, and attention over all positions."""
    per_token = 6 * (BLOCKS + VOCAB * HIDDEN) + 12 * LAYERS * HIDDEN * SEQUENCE
    return sequences * SEQUENCE * per_token / TP / (PEAK * UTILISATION)


def scale_up(sequences: int) -> Network:
    """Tensor parallelism with sequence parallelism: in a layer four all-gathers and four reduce-scatters of hidden
    states, as much as four all-reduces; a GPU sends 2·7/8 of each.  None is hidden."""
    payload = SEQUENCE * HIDDEN * 2
    return Network(sequences * LAYERS * 4 * 2 * (TP - 1) / TP * payload, 400e9, 2.0, 0.0)


def scale_out() -> Network:
    """Data parallelism, states of the optimizer split (ZeRO-1): gradients in bf16 are reduce-scattered over the ring of
    4, parameters all-gathered; a GPU sends 3/4 of its 1/8 of the parameters either time."""
    return Network(2 * (DP - 1) / DP * PARAMETERS / TP * 2, 50e9, 25.0, 0.0)


def turning_share(network: Network, gamma: float) -> float:
    """The exposed share of its time above which a faster network saves energy: 2γ · P_network ÷ P_idle."""
    return 2 * gamma * network.watts / IDLE_W


def list_cases() -> list[dict[str, float]]:
    """Every batch, overlap and γ."""
    rows = []
    for sequences in SEQUENCES:
        for hidden in HIDDEN_SHARES:
            for gamma in GAMMAS:
                case = build_case(sequences, hidden=hidden, gamma=gamma)
                rows.append(
                    {
                        "sequences_per_replica": sequences,
                        "hidden_share": hidden,
                        "gamma": gamma,
                        "compute_s": case.compute_s,
                        "scale_up_s": case.up.seconds,
                        "scale_out_s": case.out.seconds,
                        "step_s": case.seconds(NOMINAL),
                        "gpu_j": case.joules(NOMINAL),
                        "scale_up_j": case.up.joules,
                        "scale_out_j": case.out.joules,
                        "marginal_compute": case.marginal(COMPUTE),
                        "marginal_scale_up": case.marginal(SCALE_UP),
                        "marginal_scale_out": case.marginal(SCALE_OUT),
                    }
                )
    return rows


def marginal_table(*, gamma: float) -> str:
    """Efficiency of the scale-out network: a row for each batch, a column for each overlap."""
    shares = [f"{share:.4g} hidden" for share in HIDDEN_SHARES]
    lines = [f"| sequences a replica | {' | '.join(shares)} |", f"|---:|{'---:|' * len(shares)}"]
    for sequences in SEQUENCES:
        cases = (build_case(sequences, hidden=share, gamma=gamma) for share in HIDDEN_SHARES)
        lines.append(f"| {sequences} | {' | '.join(f'{case.marginal(SCALE_OUT):+.4f}' for case in cases)} |")
    return "\n".join(lines)


def parts_table() -> str:
    """All three parts, nothing of the scale-out network hidden, γ = 0.5."""
    lines = [
        "| sequences a replica | step | energy of a GPU | compute | scale-up | scale-out |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for sequences in SEQUENCES:
        case = build_case(sequences, hidden=0.0, gamma=0.5)
        parts = " | ".join(f"{case.marginal(part):+.4f}" for part in NOMINAL)
        lines.append(f"| {sequences} | {case.seconds(NOMINAL):.3g} s | {case.joules(NOMINAL):.4g} J | {parts} |")
    return "\n".join(lines)


def turning_table() -> str:
    lines = ["| network | while it sends | γ = 0 | γ = 0.5 | γ = 1 |", "|---|---:|---:|---:|---:|"]
    for name, network in ((SCALE_OUT, scale_out()), (SCALE_UP, scale_up(1))):
        shares = " | ".join(f"{turning_share(network, gamma):.1%}" for gamma in GAMMAS)
        lines.append(f"| {name} | {network.watts:.1f} W | {shares} |")
    return "\n".join(lines)


def draw() -> Picture:
    """Efficiency of the scale-out network over the hidden share, a line for each batch."""
    notes = ["Arithmetic, nothing measured; LLaMA-2-70B, tp8 × dp4 (ZeRO-1), sequences of 4096; static power constant"]
    head = heading_inches(notes)
    tall = head + 3.3
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.6, tall))
        draw_heading(figure, "Energy saved by a faster scale-out network, % per % of speed", notes)
        for column, gamma in enumerate(GAMMAS):
            panel = figure.add_axes(((0.62 + column * 2.8) / 8.6, 1.1 / tall, 2.05 / 8.6, (tall - head - 1.55) / tall))
            shares = np.linspace(0, 1, 41)
            for sequences, line in zip(SEQUENCES[:-1], ("-", "--", "-.", ":"), strict=True):
                values = [build_case(sequences, hidden=share, gamma=gamma).marginal(SCALE_OUT) for share in shares]
                panel.plot(shares, values, linestyle=line, color="#147a70", linewidth=1.5, label=f"{sequences}")
            panel.axhline(0, color=INK, linewidth=0.8)
            turn = 1 - turning_share(scale_out(), gamma)
            panel.axvline(turn, color="#b8442c", linewidth=1, linestyle=(0, (4, 2)))
            panel.set_title(f"γ = {gamma:g}: turns at {turn:.4g}", loc="left", fontsize=9)
            panel.set_xlabel("hidden share of its time")
            panel.set_ylim(-0.035, 0.115)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="lower center", ncols=6, frameon=False, title="sequences of a replica in a step"
        )
        picture = save_figure("scale-out", "Energy saved by a faster scale-out network", figure)
    atomic_files.write_bytes(FOLDER / "scale-out.svg", picture.svg)
    return picture


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = list_cases()
    with (FOLDER / "cases.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.6g}" for name, value in row.items()} for row in rows)
    draw()
    page = FOLDER / "README.md"
    page.write_text(fill_page(page.read_text(encoding="utf-8")), encoding="utf-8")


def fill_page(text: str) -> str:
    """The page with its tables made again."""
    tables = {
        "parts": parts_table(),
        "turning": turning_table(),
        "scale-out": marginal_table(gamma=0.5),
        "worst": marginal_table(gamma=1.0),
    }
    return fill_tables(text, tables, maker="benchmarks/marginal_case.py")


if __name__ == "__main__":
    main()
