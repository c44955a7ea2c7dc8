"""Two kernels, or two caches of them, compared."""
