"""Every number about a GPU, with its source."""
