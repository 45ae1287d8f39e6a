"""What values a metric can have."""

from __future__ import annotations

import math

__all__ = ["UNBOUNDED", "Bounds"]


Bounds = tuple[float, float]
"""The least and the largest value that a metric can have."""
UNBOUNDED: Bounds = (-math.inf, math.inf)
