"""Launch kernels on a GPU of this machine, check their results, and measure their times.

torch and Triton are imported only when a kernel is measured, and only in a separate process.
"""
