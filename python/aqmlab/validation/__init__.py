"""Validation: disciplines against their papers, plug-ins, the simulator against the kernel."""
