"""Attributes replaced for a while, and put back exactly as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

_ABSENT = object()


class Patches:
    """What was replaced and must come back; undone in reverse, so that one attribute may be set twice."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Give an object, module or class another attribute."""
        # vars, not getattr: a property or an inherited method must come back as what it was
        old = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._undo.append(
            (lambda: delattr(owner, name)) if old is _ABSENT else (lambda: setattr(owner, name, old))
        )

    def set_item(self, owner: MutableMapping[Any, Any], key: object, value: object) -> None:
        """Give a mapping another item."""
        old = owner.get(key, _ABSENT)
        owner[key] = value
        self._undo.append((lambda: owner.pop(key)) if old is _ABSENT else (lambda: owner.update({key: old})))

    def keep(self, owner: Any, names: Iterable[str] | None = None) -> None:
        """Remember an object's attributes, those named or all, and put them back as they are now."""
        state = vars(owner)
        wanted = None if names is None else frozenset(names)
        old = {name: value for name, value in state.items() if wanted is None or name in wanted}

        def restore() -> None:
            for name in [name for name in state if wanted is None or name in wanted]:
                del state[name]
            state.update(old)

        self._undo.append(restore)

    def later(self, undo: Callable[[], None]) -> None:
        """Remember what puts something else back."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()
