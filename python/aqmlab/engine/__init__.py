"""Running scenarios: calibration, run directories, many at a time, the store, clusters."""
