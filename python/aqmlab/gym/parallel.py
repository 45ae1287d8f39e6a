"""Several agents in one run, after the parallel API of PettingZoo."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.gym.congestion_control import Controls
from aqmlab.gym.environment import Action, Observation
from aqmlab.gym.episode import Episode, step_all
from aqmlab.scenario.scenario import Scenario

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise AqmlabError(
        "aqmlab.gym.parallel: pettingzoo is not installed; pip install 'pettingzoo>=1.25'"
    ) from None

__all__ = ["CongestionControlParallelEnv"]


class CongestionControlParallelEnv(ParallelEnv):  # type: ignore[misc]  # it has no types
    """Classes of connections, each with an agent that is named like it.

    All act at the same time, every interval. An episode is a run of the scenario, at whose end all
    are truncated; the seed of :meth:`reset` is that of the run.

    Args:
        scenario: what to run, or the path of its file.
        arguments: as of :class:`aqmlab.gym.Controls`; `classes` are the agents.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (so PettingZoo declares it)
        "name": "aqmlab/CongestionControl-v0",
        "render_modes": [],
    }

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        **arguments: Any,  # noqa: ANN401 (those of Controls)
    ) -> None:
        self._controls = Controls(scenario, **arguments)
        self.scenario = self._controls.scenario
        """What is run."""
        self.render_mode = None
        self.possible_agents = list(self._controls.classes)
        self.agents: list[str] = []
        self.observation_spaces = {
            name: gym.spaces.Box(
                self._controls.observation_space.low, self._controls.observation_space.high
            )
            for name in self.possible_agents
        }
        low, high = self._controls.action_space.low, self._controls.action_space.high
        self.action_spaces = {name: gym.spaces.Box(low, high) for name in self.possible_agents}
        self._random = np.random.default_rng()
        self._episode: Episode | None = None

    def observation_space(self, agent: str) -> gym.spaces.Space[Observation]:
        """What an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Space[Action]:
        """What an agent sets."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Starts an episode; without a seed, with the next one of the environment's generator."""
        del options  # there are none
        if seed is not None:
            self._random = np.random.default_rng(seed)
        number = int(self._random.integers(1, 2**31))
        self._episode = self._controls.begin(number)
        self.agents = list(self.possible_agents)
        seen = self._controls.look(self._episode)
        observations = {name: made[0] for name, made in seen.items()}
        return observations, {name: {"seed": number, "time_s": 0.0} for name in seen}

    def step(
        self, actions: dict[str, Action]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Makes the actions' changes, and simulates one interval."""
        episode = self._episode
        if episode is None:
            raise AqmlabError("step(): call reset() first")
        step_all([episode], [self._controls.changes(actions)], self._controls.interval)
        seen = self._controls.look(episode)
        time = episode.time
        is_over = time >= episode.end
        if is_over:
            self._episode, self.agents = None, []
        return (
            {name: made[0] for name, made in seen.items()},
            {name: made[1] for name, made in seen.items()},
            dict.fromkeys(seen, False),
            dict.fromkeys(seen, is_over),
            {name: {"time_s": time, "sender": made[2]} for name, made in seen.items()},
        )

    def close(self) -> None:
        """Ends the episode."""
        self._episode, self.agents = None, []
