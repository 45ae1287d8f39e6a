"""How often intervals hold the true mean: the tables of records/coverage.md.

    make coverage

Each row is a kind of numbers that metrics have over seeds, with a mean that is known. Many samples
of a few seeds are drawn of it; every method gives its interval of each. A method that covers 95 %
holds the mean in 95 % of them. Samples of equal values have no interval and are left out.
The draws are the same every time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from aqmlab.results import statistics
from aqmlab.results.bounds import UNBOUNDED, Bounds
from aqmlab.results.statistics import Floats, estimates, share_band
from scipy import special, stats

from lab import study

SEEDS = (3, 5, 7, 10, 20, 30)
SAMPLES = 2000
RESAMPLES = 1000
_ROOT = Path(__file__).parent.parent
PAGE = _ROOT / "records" / "coverage.md"
SHARE: Bounds = (0.0, 1.0)
POSITIVE: Bounds = (0.0, math.inf)

Ends = tuple[Floats, Floats]


@dataclass(frozen=True)
class Kind:
    """Numbers over seeds."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    mean: float
    bounds: Bounds = POSITIVE


def _log_normal(sigma: float) -> Callable[[np.random.Generator, tuple[int, int]], Floats]:
    return lambda random, shape: random.lognormal(0, sigma, shape)


def _two_valued(share: float) -> Kind:
    return Kind(
        f"two values, one in {share:.0%} of the seeds".replace("%", " %"),
        lambda random, shape: np.where(random.random(shape) < share, 1.0, 0.0),
        share,
        SHARE,
    )


def _change(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """The change in percent that a queue brings to users who are hard for both queues."""
    users = random.lognormal(0, 0.7, shape)
    first = users * random.lognormal(0, 0.2, shape)
    second = 0.8 * users * random.lognormal(0, 0.2, shape)
    return 100 * (second / first - 1)


KINDS = (
    Kind("normal", lambda random, shape: random.normal(10, 1, shape), 10),
    Kind("exponential", lambda random, shape: random.exponential(1, shape), 1),
    Kind("lognormal, sigma 0.5", _log_normal(0.5), math.exp(0.125)),
    Kind("lognormal, sigma 1", _log_normal(1.0), math.exp(0.5)),
    Kind("heavy tail (Pareto, 2.5)", lambda random, shape: 1 + random.pareto(2.5, shape), 5 / 3),
    Kind(
        "loss of 1 % of 1,000 packets",
        lambda random, shape: random.binomial(1000, 0.01, shape) / 1000,
        0.01,
        SHARE,
    ),
    Kind("rate near 0", lambda random, shape: random.beta(0.8, 80, shape), 0.8 / 80.8, SHARE),
    Kind("rate near 1", lambda random, shape: 1 - random.beta(0.8, 80, shape), 80 / 80.8, SHARE),
    Kind("nearly constant", lambda random, shape: 1 + 1e-6 * random.normal(0, 1, shape), 1),
    Kind("rounded to few values", lambda random, shape: np.round(random.normal(5, 0.6, shape)), 5),
    _two_valued(0.1),
    _two_valued(0.5),
    _two_valued(0.9),
    Kind(
        "half are zero",
        lambda random, shape: (random.random(shape) < 0.5) * random.exponential(1, shape),
        0.5,
    ),
    Kind(
        "pairs: exponential each",
        lambda random, shape: random.exponential(1, shape) - random.exponential(1, shape),
        0,
        UNBOUNDED,
    ),
    Kind(
        "pairs: 70 % without a difference",
        lambda random, shape: (random.random(shape) < 0.3) * random.normal(1, 0.5, shape),
        0.3,
        UNBOUNDED,
    ),
    Kind(
        "pairs: change in percent",
        _change,
        100 * (0.8 * math.exp(0.04) - 1),
        (-100.0, math.inf),
    ),
)


def student(values: Floats, bounds: Bounds = UNBOUNDED) -> Ends:
    """Student's t."""
    count = len(values)
    reach = special.stdtrit(count - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(count)
    mean = values.mean(axis=0)
    return np.maximum(mean - reach, bounds[0]), np.minimum(mean + reach, bounds[1])


def ours(values: Floats, bounds: Bounds) -> Ends:
    """What aqmlab computes."""
    _, low, high, _ = estimates(values, bounds=bounds)
    return low, high


def unlimited(values: Floats, bounds: Bounds) -> Ends:
    """The same with ends as far from the mean as Hall's transformation puts them."""
    with patch.object(statistics, "_FARTHEST", math.inf):
        return ours(values, bounds)


def johnson(values: Floats, _: Bounds) -> Ends:
    """Student's t, its middle moved by the skewness (N. J. Johnson 1978)."""
    low, high = student(values)
    centred = values - values.mean(axis=0)
    moved = np.mean(centred**3, axis=0) / (6 * len(values) * values.var(axis=0, ddof=1))
    return low + moved, high + moved


def transformed(values: Floats, bounds: Bounds) -> Ends:
    """Student's t of logarithms, or of logits of shares, brought back: it covers a median."""
    if bounds == UNBOUNDED or bounds[0] < 0:
        return student(values)
    # Zeros and ones have no logarithm: they count as half of a thousandth.
    if bounds == SHARE:
        low, high = student(special.logit(np.clip(values, 0.0005, 0.9995)))
        return special.expit(low), special.expit(high)
    low, high = student(np.log(np.maximum(values, 0.0005)))
    return np.exp(low), np.exp(high)


def _scipy(method: str) -> Callable[[Floats, Bounds], Ends]:
    """An interval of scipy.stats.bootstrap."""

    def ends(values: Floats, _: Bounds) -> Ends:
        with np.errstate(all="ignore"):
            found = stats.bootstrap(
                (values,),
                np.mean,
                n_resamples=RESAMPLES,
                method=method,
                rng=np.random.default_rng(1),
                batch=50,
            ).confidence_interval
        return found.low, found.high

    return ends


def bootstrap_t(values: Floats, _: Bounds) -> Ends:
    """The bootstrap-t of B. Efron and R. Tibshirani (1993)."""
    count = len(values)
    draws = np.random.default_rng(1).multinomial(count, [1 / count] * count, RESAMPLES)
    centred = values - values.mean(axis=0)
    means = draws @ centred / count
    spread = np.sqrt(np.maximum(draws @ centred**2 / count - means**2, 0.0) / (count - 1))
    ratios = np.where(spread > 0, means / np.where(spread > 0, spread, 1.0), 0.0)
    low, high = np.quantile(ratios, [0.025, 0.975], axis=0)
    error = values.std(axis=0, ddof=1) / math.sqrt(count)
    return values.mean(axis=0) - high * error, values.mean(axis=0) - low * error


METHODS: dict[str, Callable[[Floats, Bounds], Ends]] = {
    "aqmlab": ours,
    "Hall alone": unlimited,
    "t": lambda values, _: student(values),
    "Johnson": johnson,
    "t of logs": transformed,
    "bootstrap-t": bootstrap_t,
    "percentile": _scipy("percentile"),
    "BCa": _scipy("BCa"),
}


@dataclass(frozen=True)
class Found:
    """What a method's intervals of one kind were like."""

    covered: float
    width: float
    """Mean width over that of Student's t."""
    widest: float
    """The largest of these ratios."""
    degenerate: float
    """Share of the intervals that are none, or that end at the mean; see :func:`measured`."""


def measured(kind: Kind, count: int, methods: Sequence[str]) -> tuple[float, dict[str, Found]]:
    """The share of samples with equal values, and what each method does with the others."""
    place = [one.name for one in KINDS].index(kind.name)
    values = kind.draw(np.random.default_rng([place, count]), (count, SAMPLES))
    varied = np.ptp(values, axis=0) > 0
    values = values[:, varied]
    low, high = student(values)
    usual, mean, error = high - low, values.mean(axis=0), (high - low) / 1e6
    found = {}
    for name in methods:
        low, high = METHODS[name](values, kind.bounds)
        width = (high - low) / usual
        # Where the bounds cut, an end may lie anywhere beyond the mean.
        flat = ~np.isfinite(width) | (np.abs(high - mean) < error) | (np.abs(mean - low) < error)
        found[name] = Found(
            float(np.mean((low <= kind.mean) & (kind.mean <= high))),
            float(np.mean(np.nan_to_num(width))),
            float(np.max(np.nan_to_num(width))),
            float(np.mean(flat)),
        )
    return 1 - float(np.mean(varied)), found


def shown(found: Found) -> str:
    """A cell of the table: coverage and, where it is not that of t, width."""
    width = f"{found.width:.2f}" if found.width < 10 else "huge"
    return f"{100 * found.covered:.0f} % ({width})"


def rows(kinds: Sequence[Kind], counts: Sequence[int], methods: Sequence[str]) -> Iterator[str]:
    """The lines of the table."""
    for kind in kinds:
        for count in counts:
            equal, found = measured(kind, count, methods)
            without = f"{100 * equal:.0f} %" if equal > 0.005 else ""
            cells = (shown(found[name]) for name in methods)
            yield f"| {kind.name} | {count} | {' | '.join(cells)} | {without} |"


def worst(kinds: Sequence[Kind], counts: Sequence[int], methods: Sequence[str]) -> Iterator[str]:
    """The lines of the summary: what can happen at worst."""
    every = [measured(kind, count, methods)[1] for kind in kinds for count in counts]
    for name in methods:
        own = [found[name] for found in every]
        within = sum(0.92 <= one.covered <= 0.98 for one in own)
        widest = max(one.widest for one in own)
        yield (
            f"| {name} | {within} of {len(own)} | {100 * min(one.covered for one in own):.0f} % | "
            f"{widest:.2g} | {100 * max(one.degenerate for one in own):.0f} % |"
        )


CURVES = 400
POINTS = np.linspace(0.02, 0.98, 120)
ANSWERS = 400
USERS = {"users alike": 0.0, "users differ by seed": 0.3, "one seed in five is slow": 1.0}
"""What the seeds of a distribution share: the spread of the logarithm of their medians."""
BAND_SEEDS = (3, 5, 10)


def curves(users: str, count: int) -> tuple[Floats, Floats]:
    """Shares up to each time, by seed, time and sample; and the true shares."""
    random = np.random.default_rng([list(USERS).index(users), count, 7])
    spread = USERS[users]
    shape = (count, 1, CURVES)
    slow = (random.random(shape) < 0.2) * spread if spread == 1 else random.normal(0, 1, shape)
    moved = slow if spread == 1 else spread * slow
    grid = special.ndtri(POINTS)[np.newaxis, :, np.newaxis]
    true = special.ndtr(grid - moved)
    shares = random.binomial(ANSWERS, true) / ANSWERS
    shares = np.sort(shares, axis=1)  # a distribution never falls
    many = (
        0.8 * special.ndtr(grid) + 0.2 * special.ndtr(grid - 1)
        if spread == 1
        else special.ndtr(grid / math.sqrt(1 + spread**2))
    )
    return shares, many[0, :, 0]


def bands() -> Iterator[str]:
    """The lines of the table of bands round distributions."""
    yield (
        "| users | seeds | each time by Hall's interval: covers | falls by more than a point "
        "| deepest fall | aqmlab's band: covers | falls | width |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for users in USERS:
        for count in BAND_SEEDS:
            shares, true = curves(users, count)
            _, low, high, _ = estimates(shares.reshape(count, -1), bounds=SHARE)
            by_time = low.reshape(shares.shape[1:]), high.reshape(shares.shape[1:])
            parts = [share_band(shares[:, :, one])[1:] for one in range(CURVES)]
            band = np.stack([a for a, _ in parts], 1), np.stack([b for _, b in parts], 1)
            old, new = _of_bands(by_time, true), _of_bands(band, true)
            yield (
                f"| {users} | {count} | {old[0]:.0%} | {old[1]:.0%} of bands | {old[2]:.0f} points "
                f"| {new[0]:.0%} | {new[1]:.0%} | {new[3] / old[3]:.2f} |"
            ).replace("%", " %")


def _of_bands(ends: Ends, true: Floats) -> tuple[float, float, float, float]:
    """Share of times at which bands hold the truth, that fall, deepest fall in points, width."""
    low, high = ends
    there = np.isfinite(low)
    held = (low <= true[:, np.newaxis]) & (true[:, np.newaxis] <= high)
    falls = np.zeros(low.shape[1])
    for end in ends:
        highest = np.fmax.accumulate(np.nan_to_num(end, nan=-1.0), axis=0)
        falls = np.maximum(falls, np.nanmax(np.where(there, highest - end, 0.0), axis=0))
    width = float(np.mean((high - low)[there]))
    covered, falling = float(np.mean(held[there])), float(np.mean(falls > 0.01))
    return covered, falling, 100 * float(falls.max()), width


def page_tables() -> dict[str, str]:
    """The tables of the page by the name of their mark."""
    methods = list(METHODS)
    head = f"| values | seeds | {' | '.join(methods)} | all equal |"
    lines = [head, f"| --- | {'---: | ' * (len(methods) + 2)}".rstrip()]
    brief = [
        "| method | covers 92 to 98 % | least coverage | widest | at worst degenerate |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    return {
        "coverage": "\n".join([*lines, *rows(KINDS, SEEDS, methods)]),
        "bands": "\n".join(bands()),
        "worst": "\n".join([*brief, *worst(KINDS, SEEDS, methods)]),
    }


def main() -> None:
    """Prints the tables, or writes them into the page."""
    parser = study.parser(__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    is_written = parser.parse_args().write
    tables = page_tables()
    if not is_written:
        sys.stdout.write("\n\n".join(tables.values()) + "\n")
        return
    page = PAGE.read_text()
    for name, table in tables.items():
        page = study.with_section(page, name, f"{table}\n")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
