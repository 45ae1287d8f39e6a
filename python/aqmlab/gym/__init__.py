"""Environments for learning, after the Gymnasium API (extra ``aqmlab[gym]``).

Importing the module registers ``aqmlab/AQM-v0`` and ``aqmlab/CongestionControl-v0``::

    import aqmlab.gym
    import gymnasium

    env = gymnasium.make("aqmlab/AQM-v0", scenario="scenarios/bulk.toml")

Several agents in one run, after PettingZoo's parallel API: :mod:`aqmlab.gym.parallel`.
See docs/how-to/learn.md.
"""

from __future__ import annotations

from aqmlab.errors import AqmlabError

try:
    import gymnasium
except ImportError:
    raise AqmlabError(
        "aqmlab.gym: gymnasium is not installed; pip install 'gymnasium>=1.0'"
    ) from None

from aqmlab.gym.aqm import OBSERVATIONS, AqmEnv, AqmVectorEnv
from aqmlab.gym.congestion_control import (
    CONTROL_OBSERVATIONS,
    CongestionControlEnv,
    CongestionControlVectorEnv,
    Controls,
    Sender,
)
from aqmlab.gym.episode import FlowsState

__all__ = [
    "CONTROL_OBSERVATIONS",
    "OBSERVATIONS",
    "AqmEnv",
    "AqmVectorEnv",
    "CongestionControlEnv",
    "CongestionControlVectorEnv",
    "Controls",
    "FlowsState",
    "Sender",
]

gymnasium.register(
    id="aqmlab/AQM-v0",
    entry_point="aqmlab.gym.aqm:AqmEnv",
    vector_entry_point="aqmlab.gym.aqm:AqmVectorEnv",
)
gymnasium.register(
    id="aqmlab/CongestionControl-v0",
    entry_point="aqmlab.gym.congestion_control:CongestionControlEnv",
    vector_entry_point="aqmlab.gym.congestion_control:CongestionControlVectorEnv",
)
