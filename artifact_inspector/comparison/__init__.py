"""Two kernels, or two caches of them, held against each other."""
