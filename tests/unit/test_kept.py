"""Where this tool keeps what it found, and when it does not."""

from pathlib import Path

import pytest

from artifact_inspector.compiling.ask.environments import cache_directory
from artifact_inspector.errors import CompileError
from artifact_inspector.files.writer import is_disabled, user_cache, write_private


@pytest.mark.parametrize(("named", "root"), [("/some/where", "/some/where"), ("", "~/.cache"), ("here", "~/.cache")])
def test_it_lies_where_the_xdg_rules_say(named: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert user_cache() == Path(root).expanduser() / "artifact-inspector" == cache_directory()


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert user_cache() is None
    with pytest.raises(CompileError, match="no home directory"):
        cache_directory()


def test_what_is_kept_is_for_nobody_else_and_a_place_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    write_private(tmp_path / "sass" / "one", b"text")
    assert (tmp_path / "sass" / "one").read_bytes() == b"text"
    assert (tmp_path / "sass").stat().st_mode & 0o077 == 0
    write_private(tmp_path / "sass" / "one" / "two", b"text")


def test_a_switch_is_off_in_any_case_of_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SWITCH", "OFF")
    assert is_disabled("SOME_SWITCH")
    assert not is_disabled("ANOTHER_SWITCH")
