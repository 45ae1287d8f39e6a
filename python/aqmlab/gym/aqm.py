"""An agent in the place of an AQM: every interval it sets a probability, or a parameter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from aqmlab.engine.simulation import LinkState
from aqmlab.errors import AqmlabError
from aqmlab.gym.environment import (
    Action,
    Environment,
    Observation,
    VectorEnvironment,
    check_keys,
    check_numbers,
    chosen,
    several,
    text_of,
)
from aqmlab.gym.episode import Changes, Episode
from aqmlab.scenario.scenario import Scenario

__all__ = ["OBSERVATIONS", "AqmEnv", "AqmVectorEnv", "links_of"]

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


class AqmEnv(Environment):
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
        delay_target: queueing delay that costs nothing, in seconds.
        reward: the reward of an interval from the state of the link at its end; default:
            utilization less the delay beyond `delay_target`, in units of it.

    Raises:
        ScenarioError: the scenario is wrong.
        AqmlabError: there is no such link, parameter or observation.
    """

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
        check_numbers(delay_target, low, high)
        found = chosen(scenario, interval)
        self.scenario = found if parameter is not None else _with_probability(found, link)
        self.interval = interval
        self._link, self._unit = link, f" {unit}" if unit else ""
        self._key = f"{link}.discipline.{parameter or 'p'}"
        self._low, self._high = low, high
        self._observations = [OBSERVATIONS[name] for name in observations]
        self._reward = reward or _default_reward(delay_target)
        shape = (len(observations),)
        highest = [1.0 if name in _SHARES else np.inf for name in observations]
        self.observation_space = gym.spaces.Box(
            np.zeros(shape, np.float32), np.array(highest, np.float32), dtype=np.float32
        )
        self.action_space = gym.spaces.Box(low, high, (1,), np.float32)
        bounds = [text_of(np.array([bound]), low, high, self._unit) for bound in (low, high)]
        check_keys(self.scenario, [self._key], bounds)

    def begin(self, seed: int) -> Episode:
        """A run."""
        return Episode(self.scenario, seed)

    def changes(self, action: Action) -> Changes:
        """The value that the action sets."""
        return [(self._key, text_of(action, self._low, self._high, self._unit))]

    def look(self, episode: Episode) -> tuple[Observation, float, dict[str, Any]]:
        """The link, as declared; `info` has its whole state."""
        link = episode.link(self._link)
        seen = np.array([see(link) for see in self._observations], np.float32)
        return seen, self._reward(link), {"link": link}


class AqmVectorEnv(VectorEnvironment):
    """Several :class:`AqmEnv` at a time, on threads that do not hold the interpreter's lock.

    Args:
        num_envs: how many.
        scenario: as of :class:`AqmEnv`, like all other arguments.
    """

    def __init__(
        self,
        num_envs: int,
        scenario: Scenario | str | os.PathLike[str],
        **arguments: Any,  # noqa: ANN401 (those of AqmEnv)
    ) -> None:
        super().__init__(several(num_envs, lambda: AqmEnv(scenario, **arguments)))


def _default_reward(delay_target: float) -> Reward:
    def reward(link: LinkState) -> float:
        late = max(0.0, link.delay_s - delay_target) / delay_target
        return OBSERVATIONS["utilization"](link) - late

    return reward


def _with_probability(scenario: Scenario, link: str) -> Scenario:
    """The scenario in which that link's discipline is ``bernoulli``, behind the same buffer."""
    links = links_of(scenario)
    if link not in links:
        raise AqmlabError(f"link: found {link}; expected one of {', '.join(links)}")
    path, before = links[link][0], links[link][1]["discipline"]
    discipline = {"kind": "bernoulli", "p": 0.0, "limit": before["limit"]}
    if "ecn" in before:
        discipline["ecn"] = before["ecn"]
    return scenario.with_overrides({f"{path}.discipline": discipline})


def links_of(scenario: Scenario) -> dict[str, tuple[str, dict[str, Any]]]:
    """The links' directions, as ``bottleneck.forward``: their places, and what they have."""
    topology = scenario.data["topology"]
    places = {"bottleneck": ("topology.bottleneck", topology.get("bottleneck", {}))}
    for name, content in topology.get("links", {}).items():
        places[name] = (f"topology.links.{name}", content)
    return {
        f"{name}.{way}": (f"{path}.{way}", content[way])
        for name, (path, content) in places.items()
        for way in ("forward", "reverse")
        if way in content
    }
