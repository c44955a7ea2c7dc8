"""Builds SVG from shapes: escapes every text and gives every colour a class, in light and dark mode.

Text on fills is dark in both modes. Every colour comes with a letter, a word or a pattern, so that no information
depends only on colour.

Source: Okabe and Ito, Color Universal Design (2008), eight colours that colour-blind readers can distinguish;
WCAG 2.2 §1.4.3 and §1.4.11 for contrast (4.5 for text, 3 for shapes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape

from artifact_inspector.model import EventKind
from artifact_inspector.model.escaping import escape_unprintable

INK = "#111111"
"""Colour of text on any fill, in both modes."""

LIGHT = {
    "paper": "#ffffff", "text": "#1f2328", "faint": "#59636e", "line": "#7a828b",
    "accent": "#0060a8", "alarm": "#a63d00",
}  # fmt: skip
"""Background, text and lines of the light mode."""

DARK = {
    "paper": "#14181d", "text": "#e9edf1", "faint": "#aab4be", "line": "#8b949e",
    "accent": "#6cb8f0", "alarm": "#ff9d5c",
}  # fmt: skip
"""The same for the dark mode."""

FAMILIES = {
    "load": "#56b4e9", "wait": "#e69f00", "shared": "#1fae86", "matrix": "#e8743b", "float": "#f0e442",
    "store": "#a9b1ba", "barrier": "#d98cb8", "other": "#d3d8dd",
}  # fmt: skip
"""Fills of event families, equal in both modes."""

NUMBERED_FILLS = ("load", "float", "matrix", "shared", "barrier", "wait", "store", "other")
"""Fills for numbered items; neighbours differ most, and each shows its number."""

FAMILY_OF = {
    EventKind.GLOBAL_LOAD: "load", EventKind.ASYNC_COPY: "load", EventKind.COMMIT: "other", EventKind.WAIT: "wait",
    EventKind.SHARED_LOAD: "shared", EventKind.SHARED_STORE: "shared", EventKind.MATRIX: "matrix",
    EventKind.FLOAT: "float", EventKind.BARRIER: "barrier", EventKind.LAYOUT_CONVERSION: "barrier",
    EventKind.SCHEDULE_HINT: "other", EventKind.GLOBAL_STORE: "store", EventKind.ATOMIC: "store",
}  # fmt: skip
"""The family of each event kind; letters distinguish its members."""

SIZE = 11
"""Font size, in pixels."""
ADVANCE = 0.61
"""Width of a character divided by the font size: of DejaVu Sans Mono, the widest of the fonts below."""
_MAX_LENGTH = 400
"""Most characters of one text; a longer one is cut."""


def _rules(colours: dict[str, str]) -> str:
    fills = {"paper": "paper", "faint": "faint", "accent": "accent", "alarm": "alarm", "solid": "text"}
    strokes = {"rule": "line", "edge": "text", "go": "accent", "stop": "alarm"}
    rules = [f".ai-pic text{{fill:{colours['text']}}}", f".ai-pic .area{{fill:{colours['accent']}}}"]
    rules += [f".ai-pic .{name}{{fill:{colours[colour]}}}" for name, colour in fills.items()]
    rules += [f".ai-pic .{name}{{stroke:{colours[colour]}}}" for name, colour in strokes.items()]
    return "".join(rules)


STYLE = (
    ".ai-pic{font:11px 'DejaVu Sans Mono',Menlo,Consolas,monospace}"
    ".ai-pic .line{fill:none;stroke-width:1}.ai-pic .thick{fill:none;stroke-width:2}"
    ".ai-pic .dashed{stroke-dasharray:4 3}.ai-pic .dotted{stroke-dasharray:1 3}"
    ".ai-pic .head{font-size:13px;font-weight:600}.ai-pic .small{font-size:9px}"
    ".ai-pic .bold{font-weight:600}.ai-pic .area{fill-opacity:.25}"
    ".ai-pic .box{stroke-width:.75}.ai-pic .none{fill:none}"
    + "".join(f".ai-pic .{family}{{fill:{colour}}}" for family, colour in FAMILIES.items())
    + _rules(LIGHT)
    + f"@media (prefers-color-scheme:dark){{{_rules(DARK)}}}"
    + f".ai-pic .ink{{fill:{INK}}}"
    + ".ai-pic [tabindex]:focus{outline:none}.ai-pic [tabindex]:focus .box,.ai-pic [tabindex]:hover .box"
    "{stroke-width:2.5}"
)
"""The style rules of all pictures; a page with several pictures includes them once."""
SWITCHED_STYLE = (
    STYLE
    + f':root[data-theme="light"]{{{_rules(LIGHT)}}}'
    + f':root[data-theme="dark"]{{{_rules(DARK)}}}:root[data-theme] .ai-pic .ink{{fill:{INK}}}'
)
"""The same for a page with a switch between light and dark."""


def width_of(text: str, size: float = SIZE) -> float:
    """The most pixels that a text takes."""
    return len(text) * size * ADVANCE


def cut_text(text: str, room: float, size: float = SIZE) -> str:
    """The text, cut with an ellipsis to fit some pixels; empty if nothing fits.

    Example:
        >>> cut_text("matmul_kernel", 60)
        'matmul_…'
    """
    max_length = int(room / (size * ADVANCE))
    if len(text) <= max_length:
        return text
    return text[: max_length - 1] + "…" if max_length > 1 else ""


class Canvas:
    """A picture being drawn; coordinates are pixels from its upper left corner."""

    def __init__(self) -> None:
        self._elements: list[str] = []

    def rect(self, x: float, y: float, width: float, height: float, classes: str, round_: float = 0) -> None:
        """A rectangle."""
        corner = f' rx="{_number(round_)}"' if round_ else ""
        self._elements.append(
            f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(max(0, width))}" '
            f'height="{_number(max(0, height))}"{corner} class="{classes}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, classes: str) -> None:
        """A straight line."""
        self._elements.append(f'<path d="M{_number(x1)} {_number(y1)}L{_number(x2)} {_number(y2)}" class="{classes}"/>')

    def path(self, steps: str, classes: str) -> None:
        """A path of SVG commands; never contains text from a file."""
        self._elements.append(f'<path d="{steps}" class="{classes}"/>')

    def text(self, x: float, y: float, text: str, classes: str = "", anchor: str = "") -> None:
        """A line of text at its baseline; `anchor` is `middle` or `end`."""
        if text:
            attributes = (f' class="{classes}"' if classes else "") + (f' text-anchor="{anchor}"' if anchor else "")
            self._elements.append(f'<text x="{_number(x)}" y="{_number(y)}"{attributes}>{_escape_text(text)}</text>')

    def arrow(self, x: float, y: float, direction: int, classes: str = "solid") -> None:
        """A small triangle with its tip at (x, y), pointing right (1) or left (-1)."""
        tail, half = _number(x - 5 * direction), 3.5
        self._elements.append(
            f'<path d="M{_number(x)} {_number(y)}L{tail} {_number(y - half)}L{tail} {_number(y + half)}Z" '
            f'class="{classes}"/>'
        )

    def flow(self, texts: Iterable[str], x: float, y: float, width: float) -> float:
        """Small texts side by side, in as many lines as they need; returns the top of the last line."""
        left = x
        for text in texts:
            room = width_of(text, 9) + 16
            if x + room > width - left:
                x, y = left, y + 13
            self.text(x, y + 8, text, "small faint")
            x += room
        return y

    def notes(self, notes: Iterable[str], x: float, y: float, width: float, classes: str = "small faint") -> float:
        """A line for each note, cut to the width of the picture; returns the bottom."""
        for note in notes:
            self.text(x, y, cut_text(note, width - 2 * x, 9), classes)
            y += 13
        return y

    @contextmanager
    def group(self, title: str, *, focus: bool = True, location: str = "") -> Iterator[None]:
        """Group the shapes drawn inside; the title is shown as a tooltip and on focus.

        Args:
            location: stage and line that the page shows on a click, `ptx:187`.
        """
        tab_attribute = ' tabindex="0"' if focus else ""
        data_attribute = f' data-go="{_escape_text(location)}"' if location else ""
        self._elements.append(f'<g role="img"{tab_attribute}{data_attribute}><title>{_escape_text(title)}</title>')
        yield
        self._elements.append("</g>")

    @contextmanager
    def side(self, name: str) -> Iterator[None]:
        """Mark the shapes drawn inside as of one of two kernels, so that clicks show that kernel's code."""
        self._elements.append(f'<g data-side="{_escape_text(name)}">')
        yield
        self._elements.append("</g>")

    def render(self, width: float, height: float, title: str, summary: str, *, style: bool = True) -> str:
        """The picture as an SVG document, which can also be inlined in a page.

        Args:
            summary: description of the picture for screen readers.
            style: include the style rules; False for a page that has `STYLE` already.
        """
        size = f"{_number(width)} {_number(height)}"
        rules = f"<style>{STYLE}</style>" if style else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ai-pic" viewBox="0 0 {size}" '
            f'width="{_number(width)}" height="{_number(height)}" role="group" aria-label="{_escape_text(title)}">'
            f"{rules}<desc>{_escape_text(summary)}</desc>"
            f'<rect width="{_number(width)}" height="{_number(height)}" class="paper"/>'
            f"{''.join(self._elements)}</svg>\n"
        )


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _escape_text(text: str) -> str:
    """Untrusted text: cut, without invisible and bidirectional characters, and escaped for XML."""
    return escape(escape_unprintable(text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"), quote=True)
