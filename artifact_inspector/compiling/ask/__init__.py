"""Runs in the calling process: requests, results, and the processes that compile them."""
