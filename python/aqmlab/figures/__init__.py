"""Figures of runs and of groups of runs."""

from aqmlab.figures.base import comparison, queue_length, response_ccdf, response_cdf, save

__all__ = ["comparison", "queue_length", "response_ccdf", "response_cdf", "save"]
