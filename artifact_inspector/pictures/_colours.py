"""The colours of all pictures, in light and dark mode.

Text on fills is dark in both modes. Every colour comes with a letter, a word or a pattern, so that no
information depends only on colour.

Source: Okabe and Ito, Color Universal Design (2008), eight colours that colour-blind readers can
distinguish; WCAG 2.2 §1.4.3 and §1.4.11 for contrast (4.5 for text, 3 for shapes).
"""

from __future__ import annotations

from artifact_inspector.model import EventKind

INK = "#111111"
"""Colour of text on any fill, in both modes."""

LIGHT = {
    "paper": "#ffffff",
    "text": "#1f2328",
    "faint": "#59636e",
    "line": "#7a828b",
    "accent": "#0060a8",
    "alarm": "#a63d00",
}
"""Background, text and lines of the light mode."""

DARK = {
    "paper": "#14181d",
    "text": "#e9edf1",
    "faint": "#aab4be",
    "line": "#8b949e",
    "accent": "#6cb8f0",
    "alarm": "#ff9d5c",
}
"""The same for the dark mode."""

FAMILIES = {
    "load": "#56b4e9",
    "wait": "#e69f00",
    "shared": "#1fae86",
    "matrix": "#e8743b",
    "float": "#f0e442",
    "store": "#a9b1ba",
    "barrier": "#d98cb8",
    "other": "#d3d8dd",
}
"""Fills of event families, equal in both modes."""

NUMBERED_FILLS = ("load", "float", "matrix", "shared", "barrier", "wait", "store", "other")
"""Fills for numbered items; neighbours differ most, and each shows its number."""

FAMILY_OF = {
    EventKind.GLOBAL_LOAD: "load",
    EventKind.ASYNC_COPY: "load",
    EventKind.COMMIT: "other",
    EventKind.WAIT: "wait",
    EventKind.SHARED_LOAD: "shared",
    EventKind.SHARED_STORE: "shared",
    EventKind.MATRIX: "matrix",
    EventKind.FLOAT: "float",
    EventKind.BARRIER: "barrier",
    EventKind.LAYOUT_CONVERSION: "barrier",
    EventKind.SCHEDULE_HINT: "other",
    EventKind.GLOBAL_STORE: "store",
    EventKind.ATOMIC: "store",
}
"""The family of each event kind; letters distinguish its members."""


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, 1 to 21.

    Source: WCAG 2.2, definitions of relative luminance and contrast ratio.

    Example:
        >>> contrast("#000000", "#ffffff")
        21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
