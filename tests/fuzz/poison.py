"""Words of malice, put wherever a kernel's files hold a word of their author's: names, places, metadata.

Every word that a reader might obey holds `pwn`; `tests.fuzz.promises` knows what none of them may become.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from artifact_inspector.model import Stage

WORDS = (
    "\x1b[31mpwn",
    "\x1b]0;pwn\x07",
    "\x9b2Jpwn",
    "\x90pwn\x9c",
    "pwn\x08\x08\x08",
    "pwn\x7f",
    "\u202epwn",
    "\u2066pwn\u2069",
    "\u200fpwn",
    "\ufeffpwn",
    "pwn\u2028::error::pwn",
    "pwn\u2029",
    "pwn\x85::error::pwn",
    "pwn\x0b::error::pwn",
    "pwn\r::error::pwn",
    "pwn\n::error::pwn",
    "::error::pwn",
    "::stop-commands::pwn",
    "::set-output name=pwn::1",
    " ::add-mask::pwn",
    "%0A::error::pwn",
    "%25pwn,title=pwn::pwn",
    "##[error]pwn",
    "##vso[task.setvariable variable=pwn]1",
    "##teamcity[pwn name='1']",
    "<script>pwn()</script>",
    "</script><script>pwn()</script>",
    "</style><img src=x onerror=pwn()>",
    "</title></head><svg onload=pwn()>",
    '"><img src=x onerror=pwn()>',
    "'><iframe src=javascript:pwn()>",
    "--><img src=x onerror=pwn()><!--",
    "]]><img src='x' onerror='pwn()'/><![CDATA[",
    "<!--<script>pwn()",
    "&lt;img src=x onerror=pwn()&gt;",
    "&#60;script&#62;pwn()&#60;/script&#62;",
    "javascript:pwn()",
    "data:text/html,<script>pwn()</script>",
    "{{ pwn }}{% raw %}",
    "${pwn}$(pwn)`pwn`",
    "`pwn` <img src=x onerror=pwn()>",
    "``` \n<img src=x onerror=pwn()>",
    "|pwn|\n|-|\n|<img src=x onerror=pwn()>|",
    "[pwn](javascript:pwn())",
    "![pwn](http://pwn/x.png)",
    "[bold red]pwn[/]",
    "[link=http://pwn]pwn[/link]",
    "../../../../pwn",
    "/pwn/" * 40,
    "C:\\pwn\\..\\pwn",
    "pwn" * 5000,
    "\ud800pwn",
    "\U0001f600\u0301" * 50 + "pwn",
    "pwn\0pwn",
    "-pwn",
    "--help",
    "",
    " ",
    ".",
    "@pwn",
    "%pwn%s%n",
    "\\",
    '\\"pwn',
    "pwn;pwn",
    "=pwn()",
    "loop@81",
    "nan",
    "\U000e0041pwn",
)
_QUOTED = re.compile(r'"([^"\n]{1,300})"')
_STAGES = {stage.value for stage in Stage}
_NAMED = 200
"""Bytes that a file's name may have."""


def poison(kernel: Path, chance: random.Random) -> None:
    """Put words of malice into the files of a kernel, and into their names."""
    for file in sorted(kernel.iterdir()):
        if file.suffix == ".json":
            _in_metadata(file, chance)
        elif file.suffix[1:] in _STAGES and chance.random() < 0.7:
            _in_text(file, chance)
    if chance.random() < 0.3:
        (kernel / f"{_name(chance) or 'k'}.autotune.json").write_text(_timings(chance), encoding="utf-8")
    if chance.random() < 0.4:
        _in_names(kernel, chance)


def _in_text(file: Path, chance: random.Random) -> None:
    """In quoted words: all of one word by one of malice, as files of places are named again and again."""
    text = file.read_text(encoding="utf-8")
    found = list(dict.fromkeys(_QUOTED.findall(text)))
    for _ in range(chance.choice((1, 1, 2, 6))):
        if not found:
            break
        word = chance.choice(WORDS)
        if chance.random() < 0.6:
            word = _as_the_language_has_it(word)
        text = text.replace(f'"{chance.choice(found)}"', f'"{word}"')
    if chance.random() < 0.3:
        symbol = file.stem
        text = text.replace(f"@{symbol}(", '@"' + _as_the_language_has_it(chance.choice(WORDS)) + '"(')
    file.write_bytes(text.encode("utf-8", "surrogatepass"))


def _as_the_language_has_it(word: str) -> str:
    """Of MLIR and LLVM: `\\0A` for what is not plain."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}"
        for byte in word.encode("utf-8", "surrogatepass")
    )


def _in_metadata(file: Path, chance: random.Random) -> None:
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return
    if not isinstance(document, dict):
        return
    for _ in range(chance.choice((0, 1, 2, 5))):
        document[chance.choice([*document, "name", "hash", "triton_version", "pwn", *WORDS[:3]])] = chance.choice(WORDS)
    if isinstance(document.get("target"), dict) and chance.random() < 0.2:
        document["target"][chance.choice(("backend", "arch"))] = chance.choice(WORDS)
    file.write_text(json.dumps(document), encoding="utf-8")


def _timings(chance: random.Random) -> str:
    """Triton's timings of a kernel, with words of malice in them."""
    config = {
        "kwargs": {chance.choice(WORDS): chance.choice(WORDS)},
        "num_warps": chance.choice(WORDS),
        "num_stages": 2,
    }
    return json.dumps({"key": [chance.choice(WORDS)], "configs_timings": [[config, [1.0]]]})


def _in_names(kernel: Path, chance: random.Random) -> None:
    """One stem for another in all files of the kernel; then the directory's own name."""
    stem, word = min((file.stem for file in kernel.iterdir()), key=len), _name(chance)
    for file in sorted(kernel.iterdir()):
        if file.name.startswith(stem) and word:
            file.rename(kernel / (word + file.name[len(stem) :]))
    word = _name(chance)
    if word and chance.random() < 0.5:
        kernel.rename(kernel.with_name(word))


def _name(chance: random.Random) -> str:
    """A word that a file can have as its name; empty for one that none can have."""
    word = chance.choice(WORDS).replace("/", "\u2215").replace("\0", "")
    word = word.encode("utf-8", "surrogatepass")[:_NAMED].decode("utf-8", "ignore")
    return "" if word in ("", ".", "..") else word
