"""``python -m aqmlab`` is the command line."""

import sys

from aqmlab.cli import main

sys.exit(main())
