"""Environments for learning."""

import aqmlab.gym
import gymnasium
import numpy as np
import pytest
from aqmlab import AqmlabError, Scenario
from aqmlab.gym import AqmEnv, AqmVectorEnv
from gymnasium.utils.env_checker import check_env


@pytest.fixture
def bulk() -> Scenario:
    short = {"measure.warm_up": "1 s", "measure.duration": "5 s"}
    return Scenario.load("scenarios/bulk.toml").with_overrides(short)


@pytest.mark.filterwarnings("ignore:.*Box observation space.*")
def test_gymnasium_finds_nothing_wrong(bulk: Scenario) -> None:
    env = gymnasium.make("aqmlab/AQM-v0", scenario=bulk, interval=0.1)
    check_env(env.unwrapped, skip_render_check=True)


def episode(env: AqmEnv, probability: float, seed: int) -> np.ndarray:
    """Observations and rewards of an episode with one probability."""
    env.reset(seed=seed)
    rows = []
    over = False
    while not over:
        observation, reward, _, over, _ = env.step(np.array([probability], np.float32))
        rows.append([*observation, reward])
    return np.array(rows)


def test_the_same_seed_gives_the_same_episode(bulk: Scenario) -> None:
    env = AqmEnv(bulk, interval=0.1)
    first = episode(env, 0.01, seed=1)
    assert len(first) == 60
    assert np.array_equal(first, episode(env, 0.01, seed=1))
    assert not np.array_equal(first, episode(env, 0.01, seed=2))


def test_signals_shorten_the_queue_and_idle_the_link(bulk: Scenario) -> None:
    env = AqmEnv(bulk, interval=0.1)
    none, some, many = (episode(env, p, seed=1)[20:].mean(axis=0) for p in (0.0, 0.02, 0.3))
    assert none[0] > 2 * some[0] > 4 * many[0]  # delay
    assert none[1] > 0.9 > many[1]  # utilization
    assert many[2] > some[2] > none[2]  # loss


def test_a_parameter_as_action(bulk: Scenario) -> None:
    codel = bulk.with_overrides({"topology.bottleneck.forward.discipline": "codel"})
    env = AqmEnv(codel, interval=0.1, parameter="target", low=1.0, high=50.0, unit="ms")
    assert episode(env, 2.0, 1)[:, 0].mean() < episode(env, 50.0, 1)[:, 0].mean()


def test_a_vector_of_environments_does_what_each_does(bulk: Scenario) -> None:
    many = AqmVectorEnv(3, bulk, interval=0.5)
    single = AqmEnv(bulk, interval=0.5)
    many.reset(seed=7)
    actions = np.full((3, 1), 0.02, np.float32)
    rows = np.stack([np.column_stack([*many.step(actions)[:2]]) for _ in range(12)])
    for index in range(3):
        assert np.allclose(rows[:, index], episode(single, 0.02, seed=7 + index))
    # All episodes are over: the next step begins others.
    observations, rewards, _, truncated, _ = many.step(actions)
    assert not rewards.any()
    assert not truncated.any()
    assert not observations[:, 1:].any()
    many.close()


def test_what_is_wrong_is_named(bulk: Scenario) -> None:
    with pytest.raises(AqmlabError, match=r"link: found middle\.forward; expected one of"):
        AqmEnv(bulk, link="middle.forward")
    with pytest.raises(AqmlabError, match="observations: found delay; expected some of"):
        AqmEnv(bulk, observations=["delay"])
    with pytest.raises(AqmlabError, match=r"found bottleneck\.forward\.discipline\.target"):
        AqmEnv(bulk, parameter="target")
    with pytest.raises(AqmlabError, match="call reset"):
        AqmEnv(bulk).step(np.zeros(1, np.float32))
    assert "delay_s" in aqmlab.gym.OBSERVATIONS
