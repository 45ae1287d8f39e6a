"""Makes the synthetic traces of this folder: when a link has opportunities to send 1500 bytes.

Each line of a trace is the millisecond of an opportunity. The random numbers are the standard
library's Mersenne Twister, whose sequence Python keeps: the same files come out everywhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

BITS = 1500 * 8


def poisson(mean: float, draws: random.Random) -> int:
    """A Poisson number, by products of uniform ones."""
    limit, product, count = math.exp(-mean), draws.random(), 0
    while product > limit:
        product *= draws.random()
        count += 1
    return count


def lte(seconds: int = 30) -> Iterator[int]:
    """A cellular link: its rate wanders between 2 and 30 Mbit/s, on a scale of seconds."""
    draws = random.Random(1)
    level = math.log(12e6)
    for millisecond in range(1, seconds * 1000 + 1):
        level += 0.02 * draws.gauss(0.0, 1.0) + 0.001 * (math.log(12e6) - level)
        level = min(max(level, math.log(2e6)), math.log(30e6))
        for _ in range(poisson(math.exp(level) / 1000 / BITS, draws)):
            yield millisecond


def wifi(seconds: int = 10) -> Iterator[int]:
    """A shared medium: each frame exchange of up to 16 packets waits for others' exchanges."""
    draws = random.Random(2)
    now = 0.0
    while now < seconds * 1000:
        others = draws.expovariate(1.0 / 3.0) if draws.random() < 0.5 else 0.0
        packets = draws.randint(4, 16)
        now += others + 0.3 + packets * BITS / 100e6 * 1000
        for _ in range(packets):
            yield math.ceil(now)


def text(opportunities: Iterator[int]) -> str:
    """The file: one opportunity in each line."""
    return "".join(f"{millisecond}\n" for millisecond in opportunities)


def main() -> None:
    """Writes the traces beside this file."""
    folder = Path(__file__).parent
    for name, made in (("lte", lte()), ("wifi", wifi())):
        (folder / f"{name}.trace").write_text(text(made))


if __name__ == "__main__":
    main()
