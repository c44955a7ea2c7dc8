"""SASS run on paper."""
