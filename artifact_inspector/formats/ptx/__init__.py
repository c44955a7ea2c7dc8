"""PTX, NVIDIA's virtual assembly."""
