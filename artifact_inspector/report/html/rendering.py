"""Renders one HTML file from a template, the styles and scripts of this package, and JSON data.

The page loads nothing from elsewhere: its content security policy allows only its own script, by digest.
Bidirectional and invisible characters in text are shown as escapes.

**Source** HTML Living Standard, "Restrictions for contents of script elements"; Content Security Policy
Level 3; RFC 1950 for what `DecompressionStream("deflate")` reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.pictures._canvas import SWITCHED_STYLE
from artifact_inspector.version import __version__

SCRIPTS = ("view.js", "table.js", "pivot.js", "code.js", "page.js")
_NOT_IN_HTML = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def render_page(template: str, title: str, **values: object) -> str:
    """The HTML of a page. `template`: name of a template of this package. `values`: variables of the template."""
    script = "\n".join(_read_asset(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    style = Markup(_read_asset("style.css") + SWITCHED_STYLE)
    page = {"title": title, "policy": policy, "script": Markup(script), "style": style, "version": __version__}
    return _environment().get_template(template).render(values, **page)


def render_fragment(template: str, **values: object) -> Markup:
    """The HTML of a part of a page."""
    return Markup(_environment().get_template(template).render(values))


def data_element(name: str, value: object) -> Markup:
    r"""A value as a JSON element that scripts read and browsers do not run.

    Example:
        >>> print(data_element("x", {"name": "</script>"}))
        <script type="application/json" id="x">{"name":"\u003c/script\u003e"}</script>
    """
    return Markup('<script type="application/json" id="{}">{}</script>').format(
        name, Markup(as_json(value).translate(_NOT_IN_HTML))
    )


def compressed_element(name: str, value: object) -> Markup:
    """A value as a compressed JSON element, for large data that is shown on demand."""
    # Level 9 takes 13 times as long (5 s for 10 MB) and saves 3 to 8 %.
    content = base64.b64encode(zlib.compress(as_json(value).encode(), 6)).decode()
    return Markup('<script type="text/plain" data-packed id="{}">{}</script>').format(name, content)


def as_json(value: object) -> str:
    """A value as JSON: dataclasses as objects, control characters in text escaped."""
    return json.dumps(_plain(value), separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return escape_unprintable(value)
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("artifact_inspector.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda x: escape_unprintable(x) if isinstance(x, str) and not isinstance(x, Markup) else x,
    )


@cache
def _read_asset(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
