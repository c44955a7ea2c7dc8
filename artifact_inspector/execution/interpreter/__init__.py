"""What programs of any language run on: a machine of all lanes of some CTAs, its memory, what it counts."""
