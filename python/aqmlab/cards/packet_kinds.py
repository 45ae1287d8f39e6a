"""Kinds of packets that a card compares, and the runs that record every packet."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GROUPS", "LIGHT", "LOAD", "LONG"]


LIGHT: Mapping[str, str] = {
    "audit-slow": "2 Mbit/s",
    "audit-light": "12 Mbit/s",
    "audit-fast": "100 Mbit/s",
}
"""Tests in which nothing needs to be dropped, and the rates of their links."""
LOAD, LONG = "audit-load", "audit-long"

GROUPS: Mapping[str, str] = {
    "at most 100 bytes": "packets up to 100 bytes",
    "101 to 300 bytes": "packets of 101 to 300 bytes",
    "301 to 1200 bytes": "packets of 301 to 1200 bytes",
    "more than 100 bytes": "packets above 100 bytes",
    "more than 300 bytes": "packets above 300 bytes",
    "more than 1200 bytes": "packets above 1200 bytes",
    "ACKs": "ACKs",
    "first": "the first packets of flows (SYNs)",
    "young": "packets 2 to 10 of a flow",
    "old": "packets of a flow after its first 400",
    "slow": "packets of flows with fewer than 30 a second",
    "brief": "packets of slow or brief flows",
    "fast": "packets of flows with more than 100 a second",
    "bursts": "packets within 2 ms of another of their flow",
    "long bursts": "packets behind three of their flow within 10 ms",
    "after idle": "packets after 10 idle ms",
    "may be marked": "packets that may be marked",
    "not ECT": "packets that may not be marked",
    "DSCP": "packets with a DSCP",
    "sent again": "retransmissions",
    "early": "packets of the first 5 s",
    "later": "packets after the first 30 s",
    "late": "packets of the second half of the run",
    "pauses": "packets in tenths of a second in which nothing passes",
}
"""Kinds of packets that a queue can tell apart, and what people call them."""
