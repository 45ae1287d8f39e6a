"""An agent in the place of an AQM: every interval it sets a probability, or a parameter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.simulation import LinkState, Simulation
from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

__all__ = ["OBSERVATIONS", "AqmEnv", "AqmVectorEnv"]

Observation = npt.NDArray[np.float32]
Reward = Callable[[LinkState], float]

OBSERVATIONS: dict[str, Callable[[LinkState], float]] = {
    "delay_s": lambda link: link.delay_s,
    "utilization": lambda link: min(1.0, link.throughput_bps / link.rate_bps),
    "loss": lambda link: link.loss,
    "marked": lambda link: (
        link.marked_packets / link.arrived_packets if link.arrived_packets else 0.0
    ),
    "arrived_packets": lambda link: float(link.arrived_packets),
    "backlog_packets": lambda link: float(link.backlog_packets),
    "rate_bps": lambda link: float(link.rate_bps),
}
"""What an agent may see of the link, by name: now, or of the last interval."""

_SHARES = frozenset({"utilization", "loss", "marked"})
"""What cannot exceed 1."""


class AqmEnv(gym.Env[Observation, npt.NDArray[np.float32]]):
    """One link whose AQM is an agent.

    By default the action is the probability with which every arrival is signalled (dropped, or
    marked where ECN is on): the link gets the discipline ``bernoulli`` with the buffer that it has.
    With `parameter` it is a parameter of the discipline that the scenario has.

    An episode is a run of the scenario; at its end it is truncated. The seed of
    :meth:`reset` is the seed of the run: the same seed and actions give the same episode.

    Args:
        scenario: what to run, or the path of its file.
        link: the direction of a link, such as ``bottleneck.forward``.
        interval: simulated time between two actions, in seconds.
        parameter: the discipline's parameter that the action sets; default: the probability.
        low: least value of the action.
        high: largest value of the action.
        unit: unit of the parameter, such as ``ms``; none for plain numbers.
        observations: names out of :data:`OBSERVATIONS`, in their order.
        delay_target: queue delay that is free of charge, in seconds.
        reward: the reward of an interval from the state of the link at its end; default:
            utilization less the delay beyond `delay_target`, in units of it.

    Raises:
        ScenarioError: the scenario is wrong.
        AqmlabError: there is no such link, parameter or observation.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (so Gymnasium declares it)

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        *,
        link: str = "bottleneck.forward",
        interval: float = 0.01,
        parameter: str | None = None,
        low: float = 0.0,
        high: float = 1.0,
        unit: str = "",
        observations: Sequence[str] = ("delay_s", "utilization", "loss", "marked"),
        delay_target: float = 0.02,
        reward: Reward | None = None,
    ) -> None:
        if unknown := [name for name in observations if name not in OBSERVATIONS]:
            known = ", ".join(OBSERVATIONS)
            raise AqmlabError(f"observations: found {unknown[0]}; expected some of {known}")
        if interval <= 0 or delay_target <= 0 or not low < high:
            raise AqmlabError(
                "interval and delay_target must be above 0, and low below high; found "
                f"{interval}, {delay_target}, {low} and {high}"
            )
        chosen = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        if chosen.uncalibrated:
            chosen, _ = calibrate(chosen)
        self.scenario = chosen if parameter is not None else _with_probability(chosen, link)
        """What is run."""
        self._link, self._interval, self._unit = link, interval, f" {unit}" if unit else ""
        self._key = f"{link}.discipline.{parameter or 'p'}"
        self._low, self._high = low, high
        self._seen = [OBSERVATIONS[name] for name in observations]
        self._reward = reward or _default_reward(delay_target)
        shape = (len(observations),)
        highest = [1.0 if name in _SHARES else np.inf for name in observations]
        self.observation_space = gym.spaces.Box(
            np.zeros(shape, np.float32), np.array(highest, np.float32), dtype=np.float32
        )
        self.action_space = gym.spaces.Box(low, high, (1,), np.float32)
        self._simulation: Simulation | None = None
        self._check()

    def _check(self) -> None:
        """An error if nothing has the key that the action sets."""
        simulation = Simulation(self.scenario, record=False)
        if self._key not in simulation.changeable:
            keys = ", ".join(simulation.changeable)
            raise AqmlabError(f"found {self._key}, which cannot change; what can: {keys}")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; without a seed, with the next one of the environment's generator."""
        del options  # there are none
        super().reset(seed=seed)
        number = int(self.np_random.integers(1, 2**31))
        self._simulation = Simulation(self.scenario, number, record=False)
        link = self._simulation.links[self._link]
        return self._observed(link), {"seed": number, "time_s": 0.0}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets the action's value, and simulates one interval."""
        simulation = self._simulation
        if simulation is None:
            raise AqmlabError("step(): call reset() first")
        # A float32 as the number that it is, not with the digits of its rounding.
        value = float(str(np.float32(np.clip(action[0], self._low, self._high))))
        simulation.set(self._key, f"{value}{self._unit}")
        simulation.step(self._interval)
        link = simulation.links[self._link]
        is_over = simulation.time >= simulation.end
        if is_over:
            self._simulation = None
        info = {"time_s": simulation.time, "link": link}
        return self._observed(link), self._reward(link), False, is_over, info

    def close(self) -> None:
        """Ends the episode."""
        self._simulation = None

    def _observed(self, link: LinkState) -> Observation:
        return np.array([see(link) for see in self._seen], np.float32)


class AqmVectorEnv(VectorEnv[Any, Any, Any]):
    """Several :class:`AqmEnv` at a time, each in a thread of its own.

    The engine does not hold the interpreter's lock while it simulates. An environment whose
    episode is over begins the next one with the step after.

    Args:
        num_envs: how many.
        scenario: as of :class:`AqmEnv`, like all other arguments.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int,
        scenario: Scenario | str | os.PathLike[str],
        **arguments: Any,  # noqa: ANN401 (those of AqmEnv)
    ) -> None:
        first = AqmEnv(scenario, **arguments)
        rest = (AqmEnv(scenario, **arguments) for _ in range(1, num_envs))
        self._envs = [first, *rest]
        self.num_envs = num_envs
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._threads = ThreadPoolExecutor(min(num_envs, os.cpu_count() or 1))
        self._over = np.zeros(num_envs, bool)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts all episodes; from one seed follow those of all environments."""
        del options  # there are none
        seeds: list[int | None]
        if isinstance(seed, list):
            seeds = seed
        else:
            seeds = [None if seed is None else seed + index for index in range(self.num_envs)]
        self._over[:] = False
        begun = list(self._threads.map(lambda env, own: env.reset(seed=own), self._envs, seeds))
        return np.stack([observation for observation, _ in begun]), {}

    def step(
        self, actions: npt.NDArray[np.float32]
    ) -> tuple[
        Observation,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """One interval of each."""

        def one(index: int) -> tuple[Observation, float, bool]:
            env = self._envs[index]
            if self._over[index]:
                return env.reset()[0], 0.0, False
            observation, reward, _, truncated, _ = env.step(actions[index])
            return observation, reward, truncated

        made = list(self._threads.map(one, range(self.num_envs)))
        observations, rewards, truncated = zip(*made, strict=True)
        self._over = np.array(truncated)
        never = np.zeros(self.num_envs, bool)
        return np.stack(observations), np.array(rewards), never, self._over.copy(), {}

    def close(self, **_: object) -> None:
        """Ends all episodes, and the threads."""
        self._threads.shutdown(wait=True)
        for env in self._envs:
            env.close()


def _default_reward(delay_target: float) -> Reward:
    def reward(link: LinkState) -> float:
        late = max(0.0, link.delay_s - delay_target) / delay_target
        return OBSERVATIONS["utilization"](link) - late

    return reward


def _with_probability(scenario: Scenario, link: str) -> Scenario:
    """The scenario in which that link's discipline is ``bernoulli``, behind the same buffer."""
    name, _, direction = link.rpartition(".")
    topology = scenario.data["topology"]
    places = {"bottleneck": ("topology.bottleneck", topology.get("bottleneck"))}
    for other, content in topology.get("links", {}).items():
        places[other] = (f"topology.links.{other}", content)
    path, content = places.get(name, ("", None))
    if content is None or direction not in content:
        known = ", ".join(f"{place}.{way}" for place in places for way in ("forward", "reverse"))
        raise AqmlabError(f"link: found {link}; expected one of {known}")
    before = content[direction]["discipline"]
    discipline = {"kind": "bernoulli", "p": 0.0, "limit": before["limit"]}
    if "ecn" in before:
        discipline["ecn"] = before["ecn"]
    return scenario.with_overrides({f"{path}.{direction}.discipline": discipline})
