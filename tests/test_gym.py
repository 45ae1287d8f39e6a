"""Environments for learning."""

from pathlib import Path
from typing import Any

import aqmlab.gym
import gymnasium
import numpy as np
import pytest
from aqmlab import AqmlabError, Scenario, ScenarioError
from aqmlab.gym import AqmEnv, AqmVectorEnv, CongestionControlEnv, CongestionControlVectorEnv
from gymnasium.utils.env_checker import check_env


@pytest.fixture
def bulk() -> Scenario:
    short = {"measure.warm_up": "1 s", "measure.duration": "5 s"}
    return Scenario.load("scenarios/bulk.toml").with_overrides(short)


@pytest.mark.filterwarnings("ignore:.*Box observation space.*")
def test_gymnasium_finds_nothing_wrong(bulk: Scenario) -> None:
    env = gymnasium.make("aqmlab/AQM-v0", scenario=bulk, interval=0.1)
    check_env(env.unwrapped, skip_render_check=True)


def episode(env: AqmEnv | CongestionControlEnv, probability: float, seed: int) -> np.ndarray:
    """Observations and rewards of an episode with one action."""
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


# --- congestion control ------------------------------------------------------------------------


@pytest.fixture
def lone() -> Scenario:
    """One transfer over 100 ms at 10 Mbit/s, which holds 83 packets."""
    settings = {"measure.warm_up": "1 s", "measure.duration": "9 s", "traffic.transfers.flows": 1}
    more = {"traffic.transfers.tcp": "linux", "traffic.transfers.start_within": "0 s"}
    return Scenario.load("scenarios/bulk.toml").with_overrides({**settings, **more})


@pytest.fixture
def two(lone: Scenario, tmp_path: Path) -> Scenario:
    """The same connection, and one of another class."""
    head, _, rest = lone.effective.partition("[[traffic]]")
    one = "[[traffic]]" + rest
    other = one.replace('name = "transfers"', 'name = "others"')
    file = tmp_path / "two.toml"
    file.write_text(head + one + "\n" + other)
    return Scenario.load(file)


@pytest.mark.filterwarnings("ignore:.*Box observation space.*")
@pytest.mark.filterwarnings("ignore:.*For Box action spaces.*")
@pytest.mark.parametrize("action", ["cwnd", "pacing_rate"])
def test_gymnasium_finds_nothing_wrong_with_a_congestion_control(
    lone: Scenario, action: str
) -> None:
    env = gymnasium.make("aqmlab/CongestionControl-v0", scenario=lone, action=action)
    check_env(env.unwrapped, skip_render_check=True)


def test_a_window_and_a_rate_are_what_the_action_says(lone: Scenario) -> None:
    seen = ["throughput_bps", "rtt_s", "loss", "cwnd_packets"]
    windows = CongestionControlEnv(lone, high=400, observations=seen)
    # Payload of a segment over the round trip; beyond the path's 83 packets they wait, then drop.
    rate, rtt, loss, cwnd = episode(windows, 40, seed=1)[30:, :4].mean(axis=0)
    assert rate == pytest.approx(40 * 1448 * 8 / rtt, rel=0.02)
    assert rtt == pytest.approx(0.1, rel=0.05)
    assert (loss, cwnd) == (0, 40)
    rate, rtt, loss, _ = episode(windows, 150, seed=1)[30:, :4].mean(axis=0)
    assert rate == pytest.approx(1e7 * 1448 / 1538, rel=0.01)  # with Ethernet's framing
    assert rtt == pytest.approx(150 * 1538 * 8 / 1e7, rel=0.02)
    assert loss == 0
    assert episode(windows, 400, seed=1)[30:, 2].mean() > 0.01
    rates = CongestionControlEnv(lone, action="pacing_rate", high=20, observations=seen)
    rate, rtt, loss, _ = episode(rates, 5, seed=1)[30:, :4].mean(axis=0)
    assert rate == pytest.approx(5e6 * 1448 / 1500, rel=0.02)
    assert rtt < 0.11
    assert loss == 0


def test_the_same_seed_gives_the_same_episode_of_a_congestion_control(lone: Scenario) -> None:
    loss = lone.with_overrides({"topology.bottleneck.forward.loss": "0.01"})
    env = CongestionControlEnv(loss)
    first = episode(env, 40, seed=1)
    assert len(first) == 100
    assert np.array_equal(first, episode(env, 40, seed=1))
    assert not np.array_equal(first, episode(env, 40, seed=2))
    many = CongestionControlVectorEnv(3, loss)
    many.reset(seed=1)
    actions = np.full((3, 1), 40, np.float32)
    rows = np.stack([np.column_stack([*many.step(actions)[:2]]) for _ in range(100)])
    for index in range(3):
        assert np.allclose(rows[:, index], episode(env, 40, seed=1 + index))
    many.close()


def test_other_traffic_keeps_its_congestion_control(two: Scenario) -> None:
    env = CongestionControlEnv(two, flow="others", high=400)
    by_name = {each["name"]: each for each in env.scenario.data["traffic"]}
    assert by_name["others"]["tcp"]["congestion_control"]["kind"] == "external"
    assert by_name["transfers"]["tcp"]["congestion_control"]["kind"] == "cubic"
    # The more it takes, the less is left.
    assert episode(env, 10, 1)[:, 0].mean() < 0.2 < episode(env, 60, 1)[:, 0].mean()


def test_several_agents_in_one_run(two: Scenario) -> None:
    pytest.importorskip("pettingzoo", reason="NO PARALLEL ENVIRONMENT RAN: no pettingzoo")
    from aqmlab.gym.parallel import CongestionControlParallelEnv
    from pettingzoo.test import parallel_api_test

    env = CongestionControlParallelEnv(two, high=200)
    assert env.possible_agents == ["transfers", "others"]
    parallel_api_test(env, num_cycles=120)

    def shares(seed: int) -> np.ndarray:
        env.reset(seed=seed)
        rows = []
        while env.agents:
            actions = {"transfers": np.array([25], np.float32), "others": np.array([75])}
            observations, *_ = env.step(actions)
            rows.append([observations["transfers"][0], observations["others"][0]])
        return np.array(rows)

    first = shares(1)
    assert len(first) == 100
    assert np.array_equal(first, shares(1))
    transfers, others = first[30:].mean(axis=0)
    assert others == pytest.approx(3 * transfers, rel=0.05)
    env.close()


def test_a_stepped_window_replays_from_its_scenario(lone: Scenario, tmp_path: Path) -> None:
    tcp = '{ profile = "linux", congestion_control = { kind = "external", cwnd = 20 } }'
    key = "traffic.transfers.congestion_control"
    plain = lone.with_overrides({"traffic.transfers.tcp": tcp})
    with aqmlab.Simulation(plain, runs_root=tmp_path) as simulation:
        assert {f"{key}.cwnd", f"{key}.pacing_rate"} <= set(simulation.changeable)
        for time, parameter, value in [(2, "cwnd", "70"), (4, "pacing_rate", "3 Mbit/s")]:
            simulation.run_until(time)
            simulation.set(f"{key}.{parameter}", value)
        with pytest.raises(ScenarioError, match=r"congestion_control\.cwnd: found 0\.5"):
            simulation.set(f"{key}.cwnd", 0.5)
        with pytest.raises(ScenarioError, match=r"traffic\.transfers\.congestion_control\.c\b"):
            simulation.set(f"{key}.c", 0.5)
        stepped = simulation.finish(tmp_path / "stepped")
    again = aqmlab.run(Scenario.load(stepped.path / "scenario.toml"), out_dir=tmp_path / "again")
    files = sorted(stepped.path.glob("*.parquet"))
    assert files
    assert [file.read_bytes() for file in files] == [
        (again.path / file.name).read_bytes() for file in files
    ]
    assert stepped.summary["links"] == again.summary["links"]


def test_what_is_wrong_with_a_congestion_control_is_named(lone: Scenario) -> None:
    with pytest.raises(AqmlabError, match="classes: found web; expected some of transfers"):
        CongestionControlEnv(lone, flow="web")
    with pytest.raises(AqmlabError, match="action: found rate; expected cwnd or pacing_rate"):
        CongestionControlEnv(lone, action="rate")
    with pytest.raises(AqmlabError, match="link: found up; expected one of bottleneck"):
        CongestionControlEnv(lone, link="up")
    with pytest.raises(AqmlabError, match="interval: found 0"):
        CongestionControlEnv(lone, interval=0)
    assert "rtt_s" in aqmlab.gym.CONTROL_OBSERVATIONS


def test_the_wrappers_of_the_how_to_work(lone: Scenario) -> None:
    from gymnasium.wrappers import FlattenObservation, FrameStackObservation, RescaleAction

    inner = CongestionControlEnv(lone, high=200)
    low, high = np.float32(-1), np.float32(1)
    env = FlattenObservation(FrameStackObservation(RescaleAction(inner, low, high), 4))
    env.reset(seed=1)
    for _ in range(30):
        observation, *_ = env.step(np.zeros(1, np.float32))
    assert observation.shape == (20,)
    assert observation[-1] == pytest.approx(100.5)  # packets, halfway between 1 and 200


def test_one_wrong_action_moves_no_environment(bulk: Scenario) -> None:
    many = AqmVectorEnv(3, bulk, interval=0.5)
    actions = np.full((3, 1), 0.02, np.float32)
    with pytest.raises(AqmlabError, match=r"step\(\): call reset\(\) first"):
        many.step(actions)
    many.reset(seed=7)
    cases: list[tuple[Any, str]] = [
        (np.array([[0.02], [np.nan], [0.02]]), "action: found nan; expected a number from 0 to 1"),
        (np.array([[0.02], [0.02], [np.inf]]), "action: found inf"),
        (np.full((2, 1), 0.02), "actions: found 2 of them; expected one for each of 3"),
        (np.full((3, 2), 0.02), r"an array of shape \(2,\); expected one number, shape \(1,\)"),
        (np.full(3, 0.02), r"an array of shape \(\); expected one number"),
        ([["x"]] * 3, r"action: found \['x'\]; expected one number"),
    ]
    for wrong, message in cases:
        with pytest.raises(AqmlabError, match=message):
            many.step(wrong)
        assert [env.under_way().time for env in many.envs] == [0.0, 0.0, 0.0]
    many.step(actions)
    assert [env.under_way().time for env in many.envs] == [0.5, 0.5, 0.5]
    with pytest.raises(AqmlabError, match="seed: found 2 of them; expected one for each of 3"):
        many.reset(seed=[1, 2])
    many.close()
    with pytest.raises(AqmlabError, match=r"call reset\(\) first"):
        many.step(actions)
    with pytest.raises(AqmlabError, match="num_envs: found 0; expected a whole number"):
        AqmVectorEnv(0, bulk)


def test_numbers_without_meaning_are_refused(bulk: Scenario, lone: Scenario) -> None:
    nan = float("nan")
    for make in (
        lambda **more: AqmEnv(bulk, **more),
        lambda **more: CongestionControlEnv(lone, **more),
    ):
        with pytest.raises(AqmlabError, match="delay_target: found nan; expected more than 0 s"):
            make(delay_target=nan)
        with pytest.raises(AqmlabError, match="low and high: found nan and 5"):
            make(low=nan, high=5)
        with pytest.raises(AqmlabError, match="interval: found nan"):
            make(interval=nan)
        env = make()
        env.reset(seed=1)
        with pytest.raises(AqmlabError, match=r"an array of shape \(2,\); expected one number"):
            env.step(np.array([0.5, 0.5]))
        with pytest.raises(AqmlabError, match="action: found nan"):
            env.step(np.array([nan]))
    with pytest.raises(ScenarioError, match=r"discipline\.p: found -1"):
        AqmEnv(bulk, low=-1.0)


def test_agents_in_one_run_act_all_of_them(two: Scenario) -> None:
    pytest.importorskip("pettingzoo", reason="NO PARALLEL ENVIRONMENT RAN: no pettingzoo")
    from aqmlab.gym.parallel import CongestionControlParallelEnv

    env = CongestionControlParallelEnv(two)
    one = np.array([25], np.float32)
    with pytest.raises(AqmlabError, match=r"call reset\(\) first"):
        env.step({"transfers": one, "others": one})
    env.reset(seed=1)
    with pytest.raises(AqmlabError, match="found those of transfers; expected transfers, others"):
        env.step({"transfers": one})
    with pytest.raises(AqmlabError, match="found those of transfers, others, third"):
        env.step({"transfers": one, "others": one, "third": one})
