from __future__ import annotations

import numpy as np
import pytest

from engram.reward import AffineReward, ConvReward, make_reward


def test_affine_reward_before_any_measurement_takes_bright_for_target() -> None:
    reward = AffineReward(1)
    contents = np.array([-1.0, 0.0, 1.0], np.float32).reshape(3, 1, 1, 1)
    assert reward.predict(contents).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("channels", [1, 3])
def test_affine_reward_commutes_with_expectation(channels: int) -> None:
    rng = np.random.default_rng(0)
    reward = AffineReward(channels)
    contents = rng.uniform(-0.9, 0.9, (50, channels, 1, 1)).astype(np.float32)
    reward.update(contents, 0.5 + 0.3 * contents.mean(axis=(1, 2, 3)))
    values = reward.predict(contents)
    assert ((values > 0) & (values < 1)).all()  # no clipping
    assert values.mean() == pytest.approx(
        reward.predict(contents.mean(axis=0, keepdims=True))[0], abs=1e-6
    )


def test_affine_reward_is_ridge_regression_towards_its_start() -> None:
    """The same as least squares with one invented measurement per weight."""
    rng = np.random.default_rng(2)
    contents = rng.uniform(-1, 1, (5, 2, 1, 1)).astype(np.float32)
    outcomes = np.array([1.0, 0, 0, 1, 0])
    reward = AffineReward(2, strength=0.5, prior=np.array([0.0, 1.0]))
    for _ in range(2):  # learns from all measurements so far: to tell it twice changes nothing
        reward.update(contents, outcomes)
    start, root = np.array([0.0, 0.5, 0.5]), np.sqrt(0.5)
    design = np.vstack([np.column_stack([contents[:, :, 0, 0], np.ones(5)]), root * np.eye(3)])
    solution, *_ = np.linalg.lstsq(design, np.append(outcomes, root * start), rcond=None)
    assert [*reward.weights, reward.bias] == pytest.approx(list(solution))


def test_affine_reward_learns_which_channel_and_sign_matter() -> None:
    rng = np.random.default_rng(1)
    contents = rng.uniform(-1, 1, (200, 2, 1, 1)).astype(np.float32)
    outcomes = 0.5 - 0.5 * contents[:, 1, 0, 0].astype(float)  # dark in channel 1 is target
    reward = AffineReward(2)
    reward.update(contents, outcomes)
    np.testing.assert_allclose(reward.predict(contents), outcomes, atol=0.05)


def patches(seed: int, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Patches with a bright blob (target) and without."""
    rng = np.random.default_rng(seed)
    outcomes = (rng.random(n) < 0.5).astype(float)
    contents = rng.normal(-0.5, 0.2, (n, 3, 4, 4))
    contents[outcomes > 0, :, 1:3, 1:3] += 1.2
    return contents.astype(np.float32), outcomes


def test_conv_reward_learns_a_separable_problem() -> None:
    reward = ConvReward((3, 4, 4), seed=0, epochs=60)
    reward.update(*patches(0))
    contents, outcomes = patches(1)
    predicted = reward.predict(contents)
    assert ((predicted >= 0) & (predicted <= 1)).all()
    assert ((predicted > 0.5) == (outcomes > 0.5)).mean() > 0.95


def test_conv_reward_learns_fractions() -> None:
    rng = np.random.default_rng(0)
    shares = rng.random(100)
    contents = (2 * shares - 1)[:, None, None, None] * np.ones((1, 1, 2, 2))
    reward = ConvReward((1, 2, 2), seed=1, epochs=300)
    reward.update(contents.astype(np.float32), shares)
    assert np.abs(reward.predict(contents.astype(np.float32)) - shares).mean() < 0.08


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 1), (1, 2, 3), (3, 4, 4), (1, 1, 5)])
def test_conv_reward_takes_any_cell_and_depends_on_the_seed_alone(
    shape: tuple[int, int, int],
) -> None:
    contents = np.random.default_rng(0).normal(size=(6, *shape)).astype(np.float32)
    outcomes = np.array([0, 1, 0.5, 0, 0, 1.0])
    results = []
    for seed in (0, 0, 1):
        reward = ConvReward(shape, seed=seed)
        reward.update(contents, outcomes)
        results.append(reward.predict(contents))
    assert results[0].shape == (6,)
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_which_reward_is_used_where() -> None:
    assert isinstance(make_reward("affine", (1, 1, 1), seed=0), AffineReward)
    assert isinstance(make_reward("network", (1, 1, 1), seed=0), ConvReward)
    assert isinstance(make_reward("affine", (3, 4, 4), seed=0), ConvReward)
