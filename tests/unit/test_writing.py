"""Writing: whole or not at all, with nothing left behind."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from artifact_inspector.errors import CacheError
from artifact_inspector.files.writer import write_bytes, write_pieces, write_text


def test_a_file_is_replaced_in_one_step_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text("old")
    path.chmod(0o640)
    write_text(path, "new ×")
    assert (path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("new ×", 0o640)
    assert [found.name for found in tmp_path.iterdir()] == ["facts.json"]


def test_a_new_file_gets_the_permissions_that_any_new_file_gets(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    write_bytes(tmp_path / "new", b"")
    write_bytes(tmp_path / "tool", b"", 0o755)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "other", "tool")]
    assert modes[0] == modes[1]
    assert modes[2] == 0o755


def test_if_a_piece_cannot_be_made_the_old_file_stays(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half of"
        raise SystemExit(3)

    path = tmp_path / "facts.json"
    path.write_text("old")
    with pytest.raises(SystemExit):
        write_pieces(path, pieces())
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("facts.json", "old")]


def test_on_a_full_disk_the_old_file_stays_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text("old")
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from artifact_inspector.files.writer import write_text\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write_text(Path(sys.argv[1]), 'x' * 100000)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("CacheError ")
    assert "could not be written: File too large" in done.stdout
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["facts.json"]


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_no_regular_file_is_written_to_as_it_is(tmp_path: Path) -> None:
    write_text(Path("/dev/null"), "x")
    assert not stat.S_ISREG(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("place", ["missing/facts.json", "."])
def test_what_cannot_be_written_is_told(tmp_path: Path, place: str) -> None:
    with pytest.raises(CacheError, match="could not be written"):
        write_text(tmp_path / place, "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["baseline", "check"])
def test_a_command_writes_by_way_of_it(command: str) -> None:
    import artifact_inspector.cli

    text = Path(artifact_inspector.cli.__file__).with_name(f"{command}.py").read_text()
    assert "write_text(" in text or "write_pieces(" in text
    assert ".write_text(" not in text
