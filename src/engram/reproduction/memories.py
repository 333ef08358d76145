"""The memory that knows nothing: a network of random weights, made for the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

SEED = 0
MODEL = "digits"
"""The memory whose card gives the size of the network."""


def noise_memory(folder: Path) -> Path:
    """``folder/noise.safetensors``: the same weights whenever and wherever it is made.

    Layers that a fresh network starts at zero get random weights too: it draws noise.
    """
    import torch

    from engram.memory.denoiser import NetworkDenoiser
    from engram.memory.library import read_card
    from engram.memory.permanent import PermanentMemory, fresh_network
    from engram.memory.unet import UNetConfig
    from engram.seeding import torch_generator

    path = folder / "noise.safetensors"
    if path.exists() and path.with_suffix(".json").exists():
        return path
    model = read_card(MODEL)
    card = replace(
        model,
        name="noise",
        summary="random weights: a memory that knows nothing",
        data="none",
        licence="Apache-2.0",
        seed=SEED,
        steps=0,
        loss=0.0,
        sha256="",
        recipe="",
        history=[],
        seen="nothing: its weights are random",
    )
    network = fresh_network(UNetConfig.from_dict(model.network), SEED)
    generator = torch_generator(SEED, "train")
    with torch.no_grad():
        for weights in network.parameters():
            if weights.ndim > 1 and not weights.any():
                scale = weights[0].numel() ** -0.5
                weights.copy_(scale * torch.randn(weights.shape, generator=generator))
    PermanentMemory(NetworkDenoiser(network), card).save(path)
    return path
