"""What runs measured: reading them, statistics, groups of runs, differences."""
