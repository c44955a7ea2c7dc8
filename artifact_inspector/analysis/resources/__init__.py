"""What a kernel takes of a multiprocessor, and what that leaves."""
