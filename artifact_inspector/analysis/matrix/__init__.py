"""Matrix instructions, held against the dots that they do."""
