"""Timing estimates: which units launches keep busy and what they wait for, to rank launches."""
