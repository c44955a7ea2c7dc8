"""The resources that a kernel uses, and the resulting occupancy."""
