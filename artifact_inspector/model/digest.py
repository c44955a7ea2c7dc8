"""The digest that tells one text from another here."""

from __future__ import annotations

try:  # hashlib is the same function, and loads OpenSSL first: 6 ms of each start
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
