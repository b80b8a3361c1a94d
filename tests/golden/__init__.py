"""Golden traces: what the schedule of a known workload is, one step a line. Changed only by `make golden`."""
