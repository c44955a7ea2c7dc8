"""Pictures of a kernel as SVG: pure functions from facts to text."""
