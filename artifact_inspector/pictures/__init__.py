"""Pictures of a kernel as SVG: each a pure function from facts to text, with no fact of its own."""
