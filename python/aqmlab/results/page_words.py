"""The words of ``aqmlab why`` for the playground, which says the same of a response."""

from __future__ import annotations

from typing import Any

from aqmlab.results.breakdown import CAUSES, FIXED_PARTS, LINK_PARTS, part
from aqmlab.results.story import COUNTS, PLURAL, SEGMENTS
from aqmlab.results.why import MOST_CAUSES, REASONS, WORTH

__all__ = ["words"]


def words() -> dict[str, Any]:
    """What ``web/src/why.json`` holds."""
    return {
        "causes": {one.name: {"doing": one.doing, "gloss": one.gloss} for one in CAUSES},
        "parts": {
            one.key: {"label": one.label, "cause": one.cause.name, "story": one.story}
            for one in FIXED_PARTS
        },
        "link_parts": {
            key: {"label": label, "cause": cause.name, "story": story}
            for key, (label, cause, story) in LINK_PARTS.items()
        },
        "timer": part("timeout").cause.name,
        "queue": LINK_PARTS["wait"][1].name,
        "other": part("other_timer").cause.name,
        "counts": COUNTS,
        "plural": PLURAL,
        "reasons": REASONS,
        "segments": SEGMENTS,
        "worth": WORTH,
        "most": MOST_CAUSES,
    }
