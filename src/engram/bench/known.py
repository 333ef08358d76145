"""What policies are told of the tasks of a benchmark beyond what the tasks bring themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram._files import sha256_of
from engram.errors import InputError
from engram.layer_files import parsed, read_layers
from engram.layers import Layer
from engram.tasks.base import Task
from engram.tasks.sets import task_rng

MOST_NOISE = 100


@dataclass(frozen=True)
class Known:
    """Layers and a belief map from files, the same for every task, and layers of noise.

    layers : as they are written, ``NAME=FILE[:more|:less|:kinds]``;  belief : a file, or empty
    noise  : layers of random numbers, others for every task: what useless layers cost
    """

    layers: tuple[str, ...] = ()
    belief: str = ""
    noise: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= MOST_NOISE:
            raise InputError(f"noise layers {self.noise}: give 0 to {MOST_NOISE}")

    def __bool__(self) -> bool:
        return bool(self.layers or self.belief or self.noise)

    def resolved(self) -> Known:
        """The same with absolute paths, for workers elsewhere."""
        texts = []
        for text in self.layers:
            name, file, way = parsed(text)
            texts.append(f"{name}={file.resolve()}" + (f":{way}" if way else ""))
        belief = str(Path(self.belief).resolve()) if self.belief else ""
        return Known(tuple(texts), belief, self.noise)

    def told(self, task: Task, number: int) -> Task:
        """A task with all of it."""
        if not self:
            return task
        rng = task_rng("noise", 0, number)
        noise = [Layer(f"noise-{i}", rng.randn(task.grid.n_cells)) for i in range(self.noise)]
        read = read_layers(task.grid, self.layers, self.belief or None)
        if read is None:
            return task.told(noise)
        return task.told([*read, *noise], read.belief)

    def options(self) -> dict[str, Any]:
        """For result files: names and hashes of the files."""
        out: dict[str, Any] = {}
        if self.layers:
            out["layers"] = [
                {
                    "name": name,
                    "file": file.name,
                    "sha256": sha256_of([file]),
                    **({"way": way} if way else {}),
                }
                for name, file, way in map(parsed, self.layers)
            ]
        if self.belief:
            file = Path(self.belief)
            out["belief"] = {"file": file.name, "sha256": sha256_of([file])}
        if self.noise:
            out["noise_layers"] = self.noise
        return out
