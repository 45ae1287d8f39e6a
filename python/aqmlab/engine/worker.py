"""A process that makes runs for another: ``python -m aqmlab.engine.worker``, at the end of a pipe.

It reads pickled tasks from its standard input and answers each on its standard output with the
shares of it that are done (numbers), then with what was wanted of the run or an error. A task is a
scenario, a place for its run and what is wanted of it; without a place the run is only begun, and
the number is how many seconds it takes.
A process of its own keeps the others alive whatever happens to it. It ends with its input, and a
run ends when nobody listens.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from contextlib import suppress

from aqmlab.engine.commit import Done
from aqmlab.engine.probe import probe
from aqmlab.engine.schedulers import send
from aqmlab.errors import AqmlabError, RunError

__all__ = ["main"]

_REPORT_S = 0.1
"""How often the share that is done is reported."""


def main() -> None:
    """Works until the input ends."""
    # Whatever prints in here must not end up between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(content: float | AqmlabError | Done) -> None:
        try:
            send(answers, content)
        except BrokenPipeError:
            # Nobody listens any more. A run that is being made ends here, and leaves nothing.
            raise SystemExit from None

    with suppress(EOFError):
        while True:
            scenario, place, take = pickle.load(sys.stdin.buffer)
            end: AqmlabError | Done = Done(None)
            reported = time.monotonic()

            def report(share: float) -> None:
                nonlocal reported
                if (now := time.monotonic()) - reported >= _REPORT_S:
                    reported = now
                    answer(share)

            try:
                if place is None:
                    answer(probe(scenario))
                else:
                    end = Done(take(place.run(scenario, report)))
            except AqmlabError as caught:
                end = caught
            except MemoryError:
                end = RunError("memory is short")
            answer(end)


if __name__ == "__main__":
    main()
