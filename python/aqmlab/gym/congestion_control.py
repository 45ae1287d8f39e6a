"""Agents in the place of a congestion control: every interval they set a window, or a rate."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from aqmlab.engine.simulation import LinkState
from aqmlab.errors import AqmlabError
from aqmlab.gym.aqm import links_of
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
from aqmlab.gym.episode import Changes, Episode, FlowsState
from aqmlab.scenario.scenario import Scenario

__all__ = [
    "CONTROL_OBSERVATIONS",
    "CongestionControlEnv",
    "CongestionControlVectorEnv",
    "Controls",
    "Sender",
]


@dataclass(frozen=True)
class Sender:
    """What an agent may know: its connections, the link, and the shortest round trip so far."""

    flows: FlowsState
    """The connections of its class."""
    link: LinkState
    """The link that it shares."""
    least_rtt_s: float
    """The shortest mean round trip of the episode so far; 0 before the first."""


Reward = Callable[[Sender], float]

CONTROL_OBSERVATIONS: dict[str, Callable[[Sender], float]] = {
    "throughput": lambda it: min(1.0, it.flows.throughput_bps / it.link.rate_bps),
    "rtt_s": lambda it: it.flows.rtt_s,
    "queueing_s": lambda it: it.flows.rtt_s - it.least_rtt_s,
    "loss": lambda it: it.flows.loss,
    "cwnd_packets": lambda it: it.flows.cwnd_packets,
    "throughput_bps": lambda it: it.flows.throughput_bps,
    "link_delay_s": lambda it: it.link.delay_s,
}
"""What an agent may see of its connections, by name: now, or of the last interval."""

_SHARES = frozenset({"throughput", "loss"})
"""What cannot exceed 1."""
_UNITS = {"cwnd": "", "pacing_rate": " Mbit/s"}
"""What actions set, and its unit."""


class Controls:
    """Agents for classes of traffic, whose stacks get the congestion control ``external``.

    One class is one agent: it sets window or rate of all its connections.

    Args:
        scenario: what to run, or the path of its file.
        classes: the classes that have agents; default: all that can have one.
        link: the direction of the link that they share.
        interval: simulated time between two actions, in seconds.
        action: ``cwnd`` (segments) or ``pacing_rate`` (Mbit/s, headers included).
        low: least value of an action.
        high: largest value of an action.
        observations: names out of :data:`CONTROL_OBSERVATIONS`, in their order.
        delay_target: round trip beyond the shortest that is free of charge, in seconds.
        reward: the reward of an interval from the state at its end; default: throughput as a
            share of the link, less the round trip beyond `delay_target`, in units of it, less the
            share of segments that were sent again.

    Raises:
        ScenarioError: the scenario is wrong.
        AqmlabError: there is no such class, link, action or observation.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        *,
        classes: Sequence[str] | None = None,
        link: str = "bottleneck.forward",
        interval: float = 0.1,
        action: Literal["cwnd", "pacing_rate"] = "cwnd",
        low: float = 1.0,
        high: float = 100.0,
        observations: Sequence[str] = ("throughput", "rtt_s", "queueing_s", "loss", "cwnd_packets"),
        delay_target: float = 0.02,
        reward: Reward | None = None,
    ) -> None:
        if unknown := [name for name in observations if name not in CONTROL_OBSERVATIONS]:
            known = ", ".join(CONTROL_OBSERVATIONS)
            raise AqmlabError(f"observations: found {unknown[0]}; expected some of {known}")
        if action not in _UNITS:
            raise AqmlabError(f"action: found {action}; expected cwnd or pacing_rate")
        check_numbers(delay_target, low, high, least=0)
        found = chosen(scenario, interval)
        if link not in links_of(found):
            known = ", ".join(links_of(found))
            raise AqmlabError(f"link: found {link}; expected one of {known}")
        stacks = {
            each["name"]: each["tcp"] for each in found.data["traffic"] if "profile" in each["tcp"]
        }
        self.classes = list(stacks) if classes is None else list(classes)
        if unknown := [name for name in self.classes if name not in stacks]:
            known = ", ".join(stacks)
            raise AqmlabError(f"classes: found {unknown[0]}; expected some of {known}")
        if not self.classes:
            raise AqmlabError("classes: found none; expected one of traffic by TCP at least")
        self.scenario = found.with_overrides(
            {
                f"traffic.{name}.tcp.{key}": value
                for name in self.classes
                for key, value in (
                    ("recovery", "rack-tlp"),
                    ("congestion_control", '{ kind = "external" }'),
                )
            }
        )
        self.interval = interval
        self._link, self._unit = link, _UNITS[action]
        self._keys = {name: f"traffic.{name}.congestion_control.{action}" for name in self.classes}
        self._low, self._high = low, high
        # A sender that is paced is bound by its rate, not by its window.
        self._wide = action == "pacing_rate"
        self._observations = [CONTROL_OBSERVATIONS[name] for name in observations]
        self._reward = reward or _default_reward(delay_target)
        self._least: dict[str, float] = {}
        mss = {each["name"]: each["tcp"].get("mss", "0") for each in self.scenario.data["traffic"]}
        self._mss = {name: int(str(mss[name]).split()[0]) for name in self.classes}
        shape = (len(observations),)
        highest = [1.0 if name in _SHARES else np.inf for name in observations]
        self.observation_space = gym.spaces.Box(
            np.zeros(shape, np.float32), np.array(highest, np.float32), dtype=np.float32
        )
        """What each agent sees."""
        self.action_space = gym.spaces.Box(low, high, (1,), np.float32)
        """What each agent sets."""
        bounds = [text_of(np.array([bound]), low, high, self._unit) for bound in (low, high)]
        check_keys(self.scenario, list(self._keys.values()), bounds)

    def begin(self, seed: int) -> Episode:
        """A run."""
        self._least = {}
        episode = Episode(self.scenario, seed, self._mss)
        if self._wide:
            for key in self._keys.values():
                episode.stepper.set(key.replace("pacing_rate", "cwnd"), "100000")
        return episode

    def changes(self, actions: dict[str, Action]) -> Changes:
        """The values that actions set, by class."""
        if set(actions) != set(self.classes):
            found, expected = ", ".join(map(str, actions)), ", ".join(self.classes)
            raise AqmlabError(f"actions: found those of {found or 'none'}; expected {expected}")
        return [
            (self._keys[name], text_of(action, self._low, self._high, self._unit))
            for name, action in actions.items()
        ]

    def look(self, episode: Episode) -> dict[str, tuple[Observation, float, Sender]]:
        """What each agent sees and gets, by class, and what it comes from."""
        link = episode.link(self._link)
        seen = {}
        for name in self.classes:
            flows = episode.flows(name)
            if flows.rtt_s > 0:
                self._least[name] = min(self._least.get(name, flows.rtt_s), flows.rtt_s)
            sender = Sender(flows, link, self._least.get(name, 0.0))
            observation = np.array([see(sender) for see in self._observations], np.float32)
            seen[name] = observation, self._reward(sender), sender
        return seen


class CongestionControlEnv(Environment):
    """One class of connections whose congestion control is an agent.

    The class gets the congestion control ``external`` and ``recovery = "rack-tlp"``; the rest of
    its stack stays. All other traffic is as the scenario has it.

    An episode is a run of the scenario; at its end it is truncated. The seed of
    :meth:`reset` is the seed of the run: the same seed and actions give the same episode.

    Args:
        scenario: what to run, or the path of its file.
        flow: the class that has the agent; default: the first that can have one.
        arguments: as of :class:`Controls`.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        *,
        flow: str | None = None,
        **arguments: Any,  # noqa: ANN401 (those of Controls)
    ) -> None:
        classes = None if flow is None else [flow]
        controls = Controls(scenario, classes=classes, **arguments)
        if len(controls.classes) > 1:
            controls = Controls(scenario, classes=controls.classes[:1], **arguments)
        [self._class] = controls.classes
        self._controls = controls
        self.scenario, self.interval = controls.scenario, controls.interval
        self.observation_space = controls.observation_space
        self.action_space = controls.action_space

    def begin(self, seed: int) -> Episode:
        """A run."""
        return self._controls.begin(seed)

    def changes(self, action: Action) -> Changes:
        """The window or rate that the action sets."""
        return self._controls.changes({self._class: action})

    def look(self, episode: Episode) -> tuple[Observation, float, dict[str, Any]]:
        """The connections, as declared; `info` has the whole state."""
        observation, reward, sender = self._controls.look(episode)[self._class]
        return observation, reward, {"sender": sender}


class CongestionControlVectorEnv(VectorEnvironment):
    """Several :class:`CongestionControlEnv` at a time, as :class:`aqmlab.gym.AqmVectorEnv`.

    Args:
        num_envs: how many.
        scenario: as of :class:`CongestionControlEnv`, like all other arguments.
    """

    def __init__(
        self,
        num_envs: int,
        scenario: Scenario | str | os.PathLike[str],
        **arguments: Any,  # noqa: ANN401 (those of CongestionControlEnv)
    ) -> None:
        super().__init__(several(num_envs, lambda: CongestionControlEnv(scenario, **arguments)))


def _default_reward(delay_target: float) -> Reward:
    def reward(sender: Sender) -> float:
        late = max(0.0, sender.flows.rtt_s - sender.least_rtt_s - delay_target) / delay_target
        return CONTROL_OBSERVATIONS["throughput"](sender) - late - sender.flows.loss

    return reward
