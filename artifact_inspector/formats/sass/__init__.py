"""SASS, NVIDIA's machine code, as nvdisasm prints it."""
