"""The width, masks and cache policy of each memory access, and the reasons for them."""
