"""Environments for learning, after the Gymnasium API (extra ``aqmlab[gym]``).

Importing the module registers ``aqmlab/AQM-v0``::

    import aqmlab.gym
    import gymnasium

    env = gymnasium.make("aqmlab/AQM-v0", scenario="scenarios/bulk.toml")

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

__all__ = ["OBSERVATIONS", "AqmEnv", "AqmVectorEnv"]

gymnasium.register(
    id="aqmlab/AQM-v0",
    entry_point="aqmlab.gym.aqm:AqmEnv",
    vector_entry_point="aqmlab.gym.aqm:AqmVectorEnv",
)
