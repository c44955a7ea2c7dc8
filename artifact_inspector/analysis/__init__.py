"""From instructions to facts: control flow, rounds, order. Nothing here knows a language."""
