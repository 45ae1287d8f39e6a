"""A process that makes runs for another: ``python -m aqmlab.worker``, at the end of a pipe.

It reads pickled tasks from its standard input and answers each on its standard output with the
shares of it that are done (numbers), then with None or an error. A process of its own keeps the
others alive whatever happens to it. It ends with its input, and a run ends when nobody listens.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys

from aqmlab.errors import AqmlabError, RunError
from aqmlab.schedulers import send


def main() -> None:
    """Works until the input ends."""
    # An interrupt from the keyboard goes to everybody; the process that gave the task decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever prints in here must not end up between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            scenario, store = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            store.run(scenario, lambda done: send(answers, done))
        except AqmlabError as error:
            send(answers, error)
        except BrokenPipeError:
            return
        except MemoryError:
            send(answers, RunError("memory is short"))
        else:
            send(answers, None)


if __name__ == "__main__":
    main()
