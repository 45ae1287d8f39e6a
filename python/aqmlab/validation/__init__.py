"""Properties of plug-ins, examples that are worked by hand, packet scripts."""
