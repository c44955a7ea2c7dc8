"""Launching kernels on a GPU that is there: is the result right, how long does it take.

Nothing here imports torch or Triton before a kernel is measured, and then only in a process of its own.
"""
