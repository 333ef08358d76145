"""Which network copies a shape it has seen once? Designs at equal training time.

    python benchmarks/designs.py [--start digits] [--minutes 12] [--designs none,all,measured]
                                 [--folder DIR] [--out FILE.json]

Every design goes on from the same memory (``memory.permanent.grown_network``) on scenes in which
figures repeat (``memory.repeats``: no discs, no kind of the suite shapes), for as many steps as the
minutes of one core give it; ``none`` is the network as it is, ``all`` and ``measured`` have
attention at the finest resolution too, ``agreement`` is told how the measurements agree with
themselves (``memory.agreement``). ``start`` is the memory before any of it; a name that is no
design is that of a memory of the library, which is asked the same as it is. Checkpoints stand in
the folder, so the same command goes on where an earlier one was cut off, and so does each design as
a memory, to be trained further (``engram prior train --start DIR/NAME.safetensors``).

What is asked of each: areas with two figures that nobody has drawn before. The first is measured
with all cells around it, the second by three finds and three blanks. Of the cells of the second and
those next to it that were not measured, the mean log-likelihood in nats:

* alone: nothing of the first is there or told;
* another: the first is a different figure (the control);
* copy: the first is the same figure, the same way round;
* turned: the same, turned by quarters.

The in-context gain is copy (or turned) minus alone, its control another minus alone: the very same
cells are asked for, and the same of the second figure is told. Copy minus another is what the very
shape of the first is worth, beyond that there is one.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from engram._threads import set_threads
from engram._writing import write_files
from engram.bench.provenance import commit, machine
from engram.bench.tables import interval, plus_minus
from engram.memory.denoiser import Denoiser, Known
from engram.memory.distilling import symmetric_mean
from engram.memory.library import load_memory
from engram.memory.permanent import grown_network
from engram.memory.recipes import train_memory
from engram.memory.repeats import EIGHT, Way, drawn, figure
from engram.memory.sources import SceneSource
from engram.memory.training import Trainer, TrainingPlan
from engram.reproduction.verdicts import verdict

Mask = NDArray[np.bool_]

DESIGNS: dict[str, dict[str, Any]] = {
    "none": {},
    "all": {"fine": "all"},
    "measured": {"fine": "measured"},
    "agreement": {"agreement": True},
}
CASES = ("alone", "another", "copy", "turned")
SIDE, AREAS, TOLD = 32, 96, 3
"""Cells a side of the areas that are asked about, how many they are, and finds and blanks told."""
TRIAL = 8
"""Steps by which the time of a step is measured."""
SURE = 1e-3
"""No cell is held for surer than this."""


class Question(NamedTuple):
    """An area, where it was measured, and the cells that are asked for, each (SIDE, SIDE)."""

    truth: Mask
    measured: Mask
    asked: Mask


def _placed(copy: Mask, top: int, left: int) -> Mask:
    out = np.zeros((SIDE, SIDE), bool)
    out[top : top + copy.shape[0], left : left + copy.shape[1]] = copy
    return out


def _within(copy: Mask, rng: np.random.Generator, low: int, high: int) -> Mask:
    """The figure somewhere in the columns low to high, one cell from the border or more."""
    rows, cols = copy.shape
    top = int(rng.integers(1, SIDE - rows))
    left = int(rng.integers(low + 1, max(low + 2, high - cols)))
    return _placed(copy, top, left)


def questions(rng: np.random.Generator) -> dict[str, Question]:
    """The same second figure with the four kinds of first ones."""
    half, cells = SIDE // 2, float(rng.uniform(18, 45))
    while True:
        one, other = figure(rng), figure(rng)
        turn = float(rng.integers(1, 4)) * np.pi / 2
        ways = {"copy": (one, 0.0), "turned": (one, turn), "another": (other, 0.0)}
        copies = {name: drawn(mask, Way(a, False, cells)) for name, (mask, a) in ways.items()}
        if all(max(copy.shape) <= half - 3 for copy in copies.values()):
            break
    second = _within(copies["copy"], rng, half, SIDE)
    around = binary_dilation(second, EIGHT) & ~second
    told = np.zeros_like(second)
    for part in (second, around):
        told.ravel()[rng.permutation(np.flatnonzero(part))[:TOLD]] = True
    asked = (second | around) & ~told
    out = {"alone": Question(second, told, asked)}
    for name, copy in copies.items():
        first = _within(copy, rng, 0, half)
        out[name] = Question(first | second, told | binary_dilation(first, EIGHT), asked)
    return out


def nats(denoiser: Denoiser, asked: list[Question]) -> list[float]:
    """Mean log-likelihood of the cells asked for, one number an area, all eight views averaged."""
    truth = torch.from_numpy(np.stack([q.truth for q in asked]))[:, None].float() * 2 - 1
    mask = torch.from_numpy(np.stack([q.measured for q in asked]))[:, None].float()
    mean = symmetric_mean(denoiser, Known(truth * mask, mask))
    p = ((mean + 1) / 2).clamp(SURE, 1 - SURE)[:, 0].numpy()
    hit = np.where(truth[:, 0].numpy() > 0, p, 1 - p)
    return [float(np.log(one[q.asked]).mean()) for one, q in zip(hit, asked, strict=True)]


def judged(denoiser: Denoiser) -> dict[str, list[float]]:
    """Nats of every area by case; the same areas for every design."""
    rng = np.random.default_rng(14)
    areas = [questions(rng) for _ in range(AREAS)]
    return {case: nats(denoiser, [one[case] for one in areas]) for case in CASES}


def trained(design: str, args: argparse.Namespace) -> dict[str, Any]:
    """The row of a design, once it is trained."""
    start = load_memory(args.start)
    if design not in DESIGNS:
        memory = start if design == "start" else load_memory(design)
        steps = 0 if design == "start" else memory.card.steps
        return {"design": design, "steps": steps, "seconds": 0.0, "nats": judged(memory)}
    config = replace(start.network.config, **DESIGNS[design])
    source, note = SceneSource(SIDE, SIDE, "repeats"), args.folder / f"{design}.time.json"
    if not note.exists():
        network = grown_network(start.network, config, 0).requires_grad_(True)
        trial = Trainer(network, source, plan(TRIAL + 1))
        trial.step()
        began = time.process_time()
        for _ in range(TRIAL):
            trial.step()
        a_step = (time.process_time() - began) / TRIAL
        args.folder.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"steps": round(60 * args.minutes / a_step), "a_step": a_step}))
    known = json.loads(note.read_text())
    memory = train_memory(
        source,
        config,
        plan(known["steps"]),
        name=design,
        summary=f"design {design} of the comparison",
        licence=start.card.licence,
        recipe=f"python benchmarks/designs.py --minutes {args.minutes:g}",
        start=start,
        checkpoint=args.folder / f"{design}.checkpoint",
    )
    memory.save(args.folder / f"{design}.safetensors")
    seconds, parameters = known["steps"] * known["a_step"], memory.card.parameters
    row = {"design": design, "steps": known["steps"], "seconds": seconds, "parameters": parameters}
    return {**row, "nats": judged(memory)}


def plan(steps: int) -> TrainingPlan:
    """Searches under way above all, weight on the cells next to finds."""
    return TrainingPlan(
        steps=steps,
        batch=32,
        learning_rate=6e-4,
        warmup=50,
        ema=0.995,
        episodes=0.5,
        resumed=0.1,
        focus=4.0,
        checkpoint_every=100,
    )


def _gain(row: dict[str, Any], case: str, other: str) -> list[float]:
    """What one case says beyond another, area by area."""
    return (np.array(row["nats"][case]) - row["nats"][other]).tolist()


def said(name: str, values: list[float]) -> str:
    """Whether a difference is above 0, and what it is."""
    pair = interval(values)
    return f"{name} {verdict(pair).removesuffix(' from')} ({plus_minus(pair, '+')})"


def sentences(rows: list[dict[str, Any]]) -> list[str]:
    """What the table says, in words computed from the intervals."""
    worth = {row["design"]: np.array(_gain(row, "copy", "another")) for row in rows}
    alone = {row["design"]: np.array(row["nats"]["alone"]) for row in rows}
    first, *others = worth
    pairs = list(combinations(worth, 2))
    whole = [said(name, gain.tolist()) for name, gain in worth.items()]
    apart = [said(f"{b} - {a}", (worth[b] - worth[a]).tolist()) for a, b in pairs]
    better = [said(name, (alone[name] - alone[first]).tolist()) for name in others]
    return [
        f"* What the very shape of the first figure is worth (copy - another), against 0: "
        f"{'; '.join(whole)}.",
        f"* Differences of that: {'; '.join(apart)}.",
        f"* Without a first figure (alone), against {first}: {'; '.join(better)}.",
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Nats and gains by design, as Markdown."""
    gains = [*((case, "alone") for case in CASES[1:]), ("copy", "another"), ("turned", "another")]
    head = ["design", "steps", "minutes", "alone", *(" - ".join(pair) for pair in gains)]
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)])]
    for row in rows:
        minutes = f"{row['seconds'] / 60:.0f}" if row["seconds"] else "-"
        cells = [row["design"], f"{row['steps']:,}", minutes]
        cells.append(plus_minus(interval(row["nats"]["alone"])))
        cells += [plus_minus(interval(_gain(row, *pair)), "+") for pair in gains]
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def keep(rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Write rows and table."""
    note = (
        f"Mean log-likelihood in nats of the cells of a second figure and those next to it, of "
        f"which {TOLD} finds and {TOLD} blanks are told, over {AREAS} areas; ± is half of the "
        f"95 % interval over areas, gains are paired. All go on from `{args.start}`, one core "
        f"(`python benchmarks/designs.py --minutes {args.minutes:g}` at {rows[-1]['commit']})."
    )
    text = "\n\n".join([table(rows), "\n".join(sentences(rows)), note]) + "\n"
    whole = json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"
    write_files({args.out: whole, args.out.with_suffix(".md"): text})
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", default="digits")
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--folder", type=Path, default=Path("designs"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/designs.json"))
    args = parser.parse_args()
    set_threads(1)
    kept = json.loads(args.out.read_text()) if args.out.exists() else {}
    rows = kept.get("rows", [])
    for design in ("start", *args.designs.split(",")):
        if design not in {row["design"] for row in rows}:
            rows.append({"start": args.start, "commit": commit()} | trained(design, args))
            keep(rows, args)
    keep(rows, args)


if __name__ == "__main__":
    main()
