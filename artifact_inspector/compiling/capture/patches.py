"""Replace attributes temporarily, and restore them exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Replace an attribute, None if it is absent, while the block runs."""
    previous = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, previous)


class Patches:
    """Replaced attributes to restore, in reverse order, so that one attribute may be set twice."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute of an object, module or class."""
        # vars, not getattr: a property or an inherited method must be restored as such
        old = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._undo.append((lambda: delattr(owner, name)) if old is _ABSENT else (lambda: setattr(owner, name, old)))

    def set_item(self, owner: MutableMapping[Any, Any], key: object, value: object) -> None:
        """Replace an item of a mapping."""
        old = owner.get(key, _ABSENT)
        owner[key] = value
        self._undo.append((lambda: owner.pop(key)) if old is _ABSENT else (lambda: owner.update({key: old})))

    def remember(self, owner: Any, names: Iterable[str] | None = None) -> None:
        """Remember the current values of an object's attributes, those named or all, to restore them."""
        state = vars(owner)
        name_set = None if names is None else frozenset(names)
        old = {name: value for name, value in state.items() if name_set is None or name in name_set}

        def restore() -> None:
            for name in [name for name in state if name_set is None or name in name_set]:
                del state[name]
            state.update(old)

        self._undo.append(restore)

    def on_undo(self, undo: Callable[[], None]) -> None:
        """Remember a function that restores something else."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Restore everything."""
        while self._undo:
            self._undo.pop()()
