"""Container images with a kernel cache read as the directory: OCI layouts, their tars, and those of docker save."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.errors import CacheError
from artifact_inspector.files.cache import open_cache, open_location

CACHE = FIXTURES / "3.6.0" / "sm_80"


def tar(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def members(name: str, prefix: str = "root/.triton/cache/") -> dict[str, bytes]:
    files = [path for path in (CACHE / name).rglob("*") if path.is_file()]
    return {f"{prefix}{path.relative_to(CACHE / name)}": path.read_bytes() for path in files}


def layout(*layers: bytes) -> dict[str, bytes]:
    """The files of an OCI layout with one image below a nested index."""
    blobs: dict[str, bytes] = {}

    def add(content: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    manifest = {"config": add(b"{}", "config.v1+json"), "layers": [add(x, "layer.v1.tar+gzip") for x in layers]}
    index = {"manifests": [add(json.dumps(manifest).encode(), "manifest.v1+json")]}
    top = {"manifests": [add(json.dumps(index).encode(), "index.v1+json")]}
    return {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(top).encode(), **blobs}


def write(directory: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


LOWER = tar(members("softmax") | members("copy") | {"etc/passwd": b"x"}, {"bin/sh": "/bin/dash"})
COPY = next(name for name in members("copy") if name.endswith(".ptx")).rpartition("/")[0]


@pytest.mark.parametrize("kind", ["directory", "tar", "tar.gz", "docker", "address"])
def test_an_image_reads_as_the_cache_in_it(tmp_path: Path, kind: str) -> None:
    upper = tar({f"{COPY.rpartition('/')[0]}/.wh.{COPY.rpartition('/')[2]}": b""} | members("index_load", "cache/"))
    files = layout(gzip.compress(LOWER), upper)
    if kind == "directory":
        path = write(tmp_path / "image", files)
    elif kind == "address":
        path = Path(f"file://{write(tmp_path / 'image', files)}")
    elif kind == "docker":
        names = ["1" * 64 + "/layer.tar", "2" * 64 + "/layer.tar"]
        documents = {"manifest.json": json.dumps([{"Config": "c.json", "Layers": names}]).encode()}
        path = tmp_path / "image.tar"
        path.write_bytes(tar(dict(zip(names, (LOWER, upper), strict=True)) | documents))
    else:
        path = tmp_path / f"image.{kind}"
        path.write_bytes(tar(files) if kind == "tar" else gzip.compress(tar(files)))
    cache = open_location(path)
    expected = [entry for name in ("index_load", "softmax") for entry in open_cache(CACHE / name).entries]
    assert [(x.name, x.hash) for x in cache.entries] == [(x.name, x.hash) for x in expected]
    assert (cache.problems, cache.missing) == ((), ())


def test_a_higher_layer_replaces_files_and_empties_directories(tmp_path: Path) -> None:
    ptx = next(name for name in members("copy") if name.endswith(".ptx"))
    replaced = write(tmp_path / "a", layout(LOWER, tar({ptx: b"// new"})))
    (entry,) = (x for x in open_cache(replaced).entries if x.name.startswith("copy"))
    assert Path(entry.files["ptx"]).read_bytes() == b"// new"
    emptied = write(
        tmp_path / "b", layout(LOWER, tar({"root/.triton/.wh..wh..opq": b""} | members("index_load", "c/")))
    )
    assert [x.name for x in open_cache(emptied).entries] == [x.name for x in open_cache(CACHE / "index_load").entries]


def test_a_damaged_or_hostile_image_is_named_and_leaves_its_directory(tmp_path: Path) -> None:
    files = layout(LOWER, tar({"../../escaped.ptx": b"x"} | members("index_load", "c/"), {"c/link.ptx": "/etc/passwd"}))
    layers = sorted(files, key=lambda name: len(files[name]))[-2:]
    half = {**files, layers[1]: files[layers[1]][:2048]}
    cache = open_cache(write(tmp_path / "half", half))
    assert [x.name for x in cache.entries] == [x.name for x in open_cache(CACHE / "index_load").entries]
    problems = " ".join(x.problem for x in cache.missing)
    for part in ("another digest", "leads out of the archive", "a link"):
        assert part in problems
    absent = {name: content for name, content in files.items() if name != layers[1]}
    assert "the layer is missing" in str(open_cache(write(tmp_path / "absent", absent)).missing)
    for number, index in enumerate(
        (b"{", b"[]", b'{"manifests": 1}', b'{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}', b"[" * 10**5)
    ):
        with pytest.raises(CacheError, match="the image is damaged"):
            open_cache(write(tmp_path / f"bad{number}", {**files, "index.json": index}))
    loop = {"manifests": [{"digest": "sha256:" + "0" * 64}] * 3}
    name = "blobs/sha256/" + "0" * 64
    looped = {"oci-layout": b"", "index.json": json.dumps(loop).encode(), name: json.dumps(loop).encode()}
    with pytest.raises(CacheError, match="more than 64 indexes"):
        open_cache(write(tmp_path / "loop", looped))
    (tmp_path / "x.tar").write_bytes(tar({"manifest.json": b'[{"Layers": ["../../l.tar"]}]', "../../l.tar": LOWER}))
    with pytest.raises(CacheError, match="leads out of the image"):
        open_cache(tmp_path / "x.tar")
    assert not list(tmp_path.parent.glob("escaped.ptx"))
