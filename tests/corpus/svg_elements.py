"""What an SVG has: elements by class, and boxes by the title of their group."""

from __future__ import annotations

from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: str, tag: str, **attributes: str) -> list[dict[str, str]]:
    """The attributes of each element of a tag whose class has these words."""
    words = set(attributes.get("classes", "").split())
    found = ElementTree.fromstring(svg).iter(f"{SVG}{tag}")
    return [{**x.attrib, "": x.text or ""} for x in found if words <= set(x.get("class", "").split())]


def boxes_by_title(svg: str) -> dict[str, dict[str, float]]:
    """Title of a group → the position and size of its first rectangle."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and box is not None:
            found[title.text or ""] = {name: float(box.attrib[name]) for name in ("x", "y", "width", "height")}
    return found
