"""An area that is followed measurement by measurement is told the same as one compared anew."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from engram.memory import agreement as told
from engram.memory import comparing
from engram.memory.agreement import agreement
from engram.memory.comparing import REACH, Comparison
from engram.memory.permanent import fresh_network
from engram.memory.unet import UNetConfig
from engram.symmetry import TURNS, turned

Area = tuple[Tensor, Tensor]


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "_latest", told._Latest())


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every area that is compared as a whole."""
    made, init = list[int](), Comparison.__init__

    def counted(self: Comparison, *areas: Tensor) -> None:
        made.append(1)
        init(self, *areas)

    monkeypatch.setattr(Comparison, "__init__", counted)
    return made


def search(seed: int, count: int, shape: tuple[int, int] = (26, 30)) -> Iterator[Area]:
    """Values and weight (1, H, W) of a search, after every measurement."""
    rng = np.random.default_rng(seed)
    field = gaussian_filter(rng.standard_normal(shape), 1.5)
    truth = torch.from_numpy(field > 1.2 * field.std())
    values, weight = torch.zeros(1, *shape), torch.zeros(1, *shape)
    for cell in rng.permutation(field.size)[:count].tolist():
        row, col = divmod(cell, shape[1])
        values[0, row, col], weight[0, row, col] = 1.0 if truth[row, col] else -1.0, 1.0
        yield values.clone(), weight.clone()


def compared_anew(values: Tensor, weight: Tensor) -> Tensor:
    """What is said of one area where no other is kept."""
    kept, told._latest = told._latest, told._Latest()
    said = agreement(values, weight)
    told._latest = kept
    return said


@pytest.mark.parametrize("shape", [(26, 30), (16, 16)])
def test_a_search_that_is_followed_is_told_the_same_to_the_last_bit(
    shape: tuple[int, int], anew: list[int]
) -> None:
    said = [(agreement(*area), area) for area in search(0, 140, shape)]
    assert len(anew) == 1
    for one, area in said:
        assert torch.equal(one, compared_anew(*area))
    assert float(said[-1][0].std()) > 0.1


def test_a_find_wakes_blanks_around_it_that_nobody_had_to_hear(anew: list[int]) -> None:
    values = torch.zeros(1, 40, 40)
    values[0, 5, 5], values[0, 30, 28:36] = 1.0, -1.0
    agreement(values, values.abs())
    values[0, 30 - REACH, 32] = 1.0
    said = agreement(values, values.abs())
    assert len(anew) == 1
    assert torch.equal(said, compared_anew(values, values.abs()))


def test_several_measurements_at_once_are_followed_and_many_are_not(anew: list[int]) -> None:
    areas = list(search(1, 80))
    for number in (40, 40 + comparing.MORE, 70):
        said = agreement(*areas[number])
        assert torch.equal(said, compared_anew(*areas[number]))
    assert len(anew) == 2 + 3


@pytest.mark.parametrize("change", ["another report", "taken back", "in doubt", "of another size"])
def test_an_area_with_something_else_measured_is_compared_anew(change: str) -> None:
    *_, (values, weight) = search(2, 60)
    agreement(values, weight)
    row, col = torch.nonzero(values[0] > 0)[0].tolist()
    if change == "another report":
        values[0, row, col] = -1.0
    elif change == "taken back":
        values[0, row, col] = weight[0, row, col] = 0.0
    elif change == "in doubt":
        free = torch.nonzero(weight[0] == 0)[0].tolist()
        values[0, free[0], free[1]], weight[0, free[0], free[1]] = 0.6, 0.6
    else:
        values, weight = values[:, :, :20], weight[:, :, :20]
    assert torch.equal(agreement(values, weight), compared_anew(values, weight))


def test_two_searches_by_turns_are_both_followed(anew: list[int]) -> None:
    for one, other in zip(search(3, 40), search(4, 40), strict=True):
        for area in (one, other):
            assert torch.equal(agreement(*area), compared_anew(*area))
    followed = len(anew) - 2 * 40  # the rest was compared anew to be compared with
    assert followed <= 4


def test_searches_in_several_threads_do_not_disturb_each_other() -> None:
    def run(seed: int) -> list[Tensor]:
        return [agreement(*area) for area in search(seed, 50)]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, [5, 5, 6, 6]))
    told._latest = told._Latest()
    for seed, said in zip([5, 5, 6, 6], together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(said, run(seed), strict=True))


def test_whoever_follows_an_area_has_it_alone() -> None:
    *_, (values, _) = search(7, 20)
    found, blank = (values[0] > 0).float(), (values[0] < 0).float()
    told._latest.keep(told._latest.followed(found, blank))
    mine, another = (told._latest.followed(found, blank) for _ in range(2))
    assert mine is not another
    assert torch.equal(mine.says(), another.says())


def test_areas_that_are_kept_stay_few_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    areas = [list(search(seed, 60))[-1] for seed in range(told.KEPT + 3)]
    for area in areas:
        agreement(*area)
    kept = told._latest._kept
    assert len(kept) == told.KEPT
    latest = (areas[-1][0][0] > 0).float()
    assert torch.equal(kept[0].found, latest)
    monkeypatch.setattr(told, "NUMBERS", kept[0].numbers + kept[1].numbers)
    agreement(*areas[-1])
    assert [one.numbers for one in told._latest._kept] == [one.numbers for one in kept[:2]]


def test_an_area_that_has_grown_too_large_to_be_kept_is_told_the_same(
    monkeypatch: pytest.MonkeyPatch, anew: list[int]
) -> None:
    areas = list(search(8, 90))
    whole = [compared_anew(*area) for area in areas]
    made = len(anew)
    agreement(*areas[59])
    monkeypatch.setattr(told, "NUMBERS", told._latest._kept[0].numbers)
    for area, said in zip(areas[60:], whole[60:], strict=True):
        torch.testing.assert_close(agreement(*area), said)
    assert len(anew) == made + 1


def test_an_area_with_a_border_around_it_is_told_what_it_is_told_without(anew: list[int]) -> None:
    network = fresh_network(
        UNetConfig(3, 1, True, widths=(8, 16), blocks=1, time_features=8, agreement=True), 0
    )
    network.stem.weight.data.normal_()
    network = network.requires_grad_(False)
    *_, (values, weight) = search(9, 100, (25, 25))
    views = [torch.stack([torch.zeros(1, 25, 25), values, weight], dim=1)]
    views = [turned(views[0], k) for k in range(TURNS)]
    network(torch.cat(views), torch.ones(TURNS))
    assert len(anew) == 1
    with_border = [torch.nn.functional.pad(x, (0, 3, 0, 3)) for x in (values, weight)]
    said = agreement(with_border[0], with_border[1], (25, 25))
    assert torch.equal(said[..., :25, :25], agreement(values, weight))
    assert torch.equal(
        said[..., 25:, :], agreement(0 * values, 0 * weight)[..., :1, :1].expand(-1, -1, 3, 28)
    )


def test_it_does_not_depend_on_what_torch_does_by_default() -> None:
    area, *others = [list(search(3, n))[-1] for n in (50, 51, 52)]
    usual = [agreement(*one) for one in (area, *others)]
    told._latest = told._Latest()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            first = agreement(*area)
        rest = [agreement(*one) for one in others]
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(usual, [first, *rest], strict=True))
