"""What the environments have in common: episodes, seeds, one of them or several at a time."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.simulation import Simulation
from aqmlab.errors import AqmlabError
from aqmlab.gym.episode import Changes, Episode, step_all
from aqmlab.scenario.scenario import Scenario

__all__ = [
    "Action",
    "Environment",
    "Observation",
    "VectorEnvironment",
    "check_keys",
    "check_numbers",
    "chosen",
    "several",
    "text_of",
]

Observation = npt.NDArray[np.float32]
Action = npt.NDArray[np.float32]


def chosen(scenario: Scenario | str | os.PathLike[str], interval: float) -> Scenario:
    """The scenario of an environment, calibrated if it leaves a population to ``load``."""
    if not 0 < interval < math.inf:
        raise AqmlabError(f"interval: found {interval}; expected more than 0 s")
    found = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    return calibrate(found)[0] if found.uncalibrated else found


def check_numbers(delay_target: float, low: float, high: float, least: float = -math.inf) -> None:
    """An error if the bounds of actions or the free delay mean nothing."""
    if not 0 < delay_target < math.inf:
        raise AqmlabError(f"delay_target: found {delay_target}; expected more than 0 s")
    if not least < low < high < math.inf:
        above = "" if least < 0 else f" above {least:g}"
        raise AqmlabError(f"low and high: found {low} and {high}; expected low{above} below high")


def text_of(action: Action, low: float, high: float, unit: str) -> str:
    """The one number of an action, between two others, as scenarios have it.

    A float32 as the number that it is, not with the digits of its rounding.

    Raises:
        AqmlabError: the action is not one number.
    """
    try:
        numbers = np.asarray(action, np.float64)
    except (TypeError, ValueError):
        raise AqmlabError(f"action: found {action!r}; expected one number in an array") from None
    if numbers.shape != (1,):
        raise AqmlabError(
            f"action: found an array of shape {numbers.shape}; expected one number, shape (1,)"
        )
    value = float(numbers[0])
    if not math.isfinite(value):
        raise AqmlabError(f"action: found {value}; expected a number from {low:g} to {high:g}")
    return f"{min(max(value, low), high):.7g}{unit}"


def check_keys(scenario: Scenario, keys: list[str], texts: Sequence[str]) -> None:
    """An error if nothing has a key that actions set, or if it cannot have these values."""
    with Simulation(scenario, record=False) as simulation:
        changeable = simulation.changeable
        if unknown := [key for key in keys if key not in changeable]:
            known = ", ".join(changeable)
            raise AqmlabError(f"found {unknown[0]}, which cannot change; what can: {known}")
        for key in keys:
            for text in texts:
                simulation.set(key, text)


_Made = TypeVar("_Made", bound="Environment")


def several(number: int, make: Callable[[], _Made]) -> list[_Made]:
    """So many environments."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise AqmlabError(f"num_envs: found {number!r}; expected a whole number, at least 1")
    return [make() for _ in range(number)]


class Environment(gym.Env[Observation, Action]):
    """An agent in a run: every interval it changes something, and looks.

    An episode is a run of the scenario; at its end it is truncated. The seed of :meth:`reset` is
    the seed of the run: the same seed and actions give the same episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (so Gymnasium declares it)
    scenario: Scenario
    """What is run."""
    interval: float
    """Simulated time between two actions, in seconds."""
    episode: Episode | None = None
    """The run under way."""

    @abstractmethod
    def begin(self, seed: int) -> Episode:
        """A run."""

    @abstractmethod
    def changes(self, action: Action) -> Changes:
        """What an action changes."""

    @abstractmethod
    def look(self, episode: Episode) -> tuple[Observation, float, dict[str, Any]]:
        """Observation and reward of the last interval, and the state they come from."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; without a seed, with the next one of the environment's generator."""
        del options  # there are none
        super().reset(seed=seed)
        number = int(self.np_random.integers(1, 2**31))
        self.episode = self.begin(number)
        observation, _, info = self.look(self.episode)
        return observation, {"seed": number, "time_s": 0.0, **info}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Makes the action's changes, and simulates one interval."""
        episode = self.under_way()
        step_all([episode], [self.changes(action)], self.interval)
        return self.stepped()

    def under_way(self) -> Episode:
        """The run under way; an error if there is none."""
        if self.episode is None:
            raise AqmlabError("step(): call reset() first")
        return self.episode

    def stepped(self) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """What has come of a step that was made."""
        episode = self.under_way()
        observation, reward, info = self.look(episode)
        info["time_s"] = episode.time
        is_over = info["time_s"] >= episode.end
        if is_over:
            self.episode = None
        return observation, reward, False, is_over, info

    def close(self) -> None:
        """Ends the episode."""
        self.episode = None


class VectorEnvironment(VectorEnv[Any, Any, Any]):
    """Several environments at a time, on threads.

    The engine does not hold the interpreter's lock while it simulates. An environment whose
    episode is over begins the next one with the step after.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, envs: Sequence[Environment]) -> None:
        first = envs[0]
        self.envs = list(envs)
        """The environments."""
        self._has_begun = False
        self.num_envs = len(envs)
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)

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
        if len(seeds) != self.num_envs:
            raise AqmlabError(
                f"seed: found {len(seeds)} of them; expected one for each of {self.num_envs} "
                "environments"
            )
        self._has_begun = True
        begun = [env.reset(seed=own)[0] for env, own in zip(self.envs, seeds, strict=True)]
        return np.stack(begun), {}

    def step(
        self, actions: Action
    ) -> tuple[
        Observation,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """One interval of each. A wrong action is refused before any of them has moved."""
        if not self._has_begun:
            raise AqmlabError("step(): call reset() first")
        if len(actions) != self.num_envs:
            raise AqmlabError(
                f"actions: found {len(actions)} of them; expected one for each of "
                f"{self.num_envs} environments"
            )
        changes = [env.changes(action) for env, action in zip(self.envs, actions, strict=True)]
        running = [env.episode is not None for env in self.envs]
        pairs = [(env, own) for env, own in zip(self.envs, changes, strict=True) if env.episode]
        if pairs:
            episodes = [env.under_way() for env, _ in pairs]
            step_all(episodes, [own for _, own in pairs], self.envs[0].interval)
        observations = np.empty(self.observation_space.shape or (), np.float32)
        rewards = np.zeros(self.num_envs)
        truncated = np.zeros(self.num_envs, bool)
        for index, env in enumerate(self.envs):
            if running[index]:
                made = env.stepped()
                observations[index], rewards[index], truncated[index] = made[0], made[1], made[3]
            else:
                observations[index] = env.reset()[0]
        return observations, rewards, np.zeros(self.num_envs, bool), truncated, {}

    def close(self, **_: object) -> None:
        """Ends all episodes."""
        self._has_begun = False
        for env in self.envs:
            env.close()
