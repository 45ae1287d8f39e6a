"""``python -m aqmlab`` is the command line."""

import sys

from aqmlab.cli.app import main

sys.exit(main())
