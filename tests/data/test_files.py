"""Files and folders: whole or not at all, beside other writers, through links, whatever their names look like."""

import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from pmordinal.data import files

KINDS = pytest.mark.parametrize("kind", ["file", "folder"])
MARKER = "index"


def write(kind, path, text):
    if kind == "folder":
        files.write_folder(
            path, {MARKER: text.encode(), "deep/er/leaf": text.encode()}, marker=MARKER
        )
    else:
        with files.whole(path) as temporary:
            temporary.write_text(text)


def read(kind, path):
    found = files.read_folder(path) if kind == "folder" else {"": files.read_file(path)}
    (text,) = {content.decode() for content in found.values()}
    return text


@KINDS
@pytest.mark.parametrize("name", ["plain", "run#2", "what?", "new\nline", "http:", "x" * 240])
def test_any_name_of_this_machine(kind, tmp_path, name):
    path = tmp_path / name
    write(kind, path, "first")
    write(kind, path, "second")
    assert read(kind, path) == "second"
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/fit.zarr",
        "http://host/fit.nc",
        "file:///tmp/fit.nc",
        Path("s3://bucket/fit.nc"),
    ],
)
def test_addresses_are_refused(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is an address: only files of this machine"):
        files.local(address)
    assert not list(tmp_path.iterdir())


def test_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.local("~/fit.nc") == tmp_path / "fit.nc"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run2:").mkdir()
    assert files.local(Path("run2:/fit.nc")) == Path("run2:/fit.nc")
    with pytest.raises(ValueError, match="NUL"):
        files.local("a\0b")
    with pytest.raises(TypeError, match="must be text or a"):
        files.local(b"bytes")


@KINDS
def test_a_link_is_written_through(kind, tmp_path):
    (tmp_path / "far").mkdir()
    link, real = tmp_path / "link", tmp_path / "far" / "real"
    link.symlink_to(real)
    for text in ("first", "second"):  # what it leads to need not be there yet
        write(kind, link, text)
        assert link.is_symlink() and not real.is_symlink()
        assert read(kind, real) == read(kind, link) == text
    assert sorted(p.name for p in tmp_path.rglob("*") if p.name.startswith(".")) == []


@KINDS
def test_the_permissions_stay(kind, tmp_path):
    path = tmp_path / "it"
    write(kind, path, "first")
    usual = stat.S_IMODE(path.stat().st_mode)
    mode = usual & ~0o077
    path.chmod(mode)
    write(kind, path, "second")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    write(kind, tmp_path / "other", "first")
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == usual


@KINDS
def test_targets_that_cannot_be(kind, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write .*there is no folder"):
        write(kind, tmp_path / "missing" / "it", "text")
    locked = tmp_path / "locked"
    write(kind, locked, "first")
    locked.chmod(0o555)
    with pytest.raises(PermissionError, match=r"cannot write .*locked: it is read-only"):
        write(kind, locked, "second")
    assert read(kind, locked) == "first"
    locked.chmod(0o755)
    other = tmp_path / "other"
    if kind == "file":
        other.mkdir()
        with pytest.raises(IsADirectoryError, match="it is a folder"):
            write(kind, other, "text")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="not an ordinary file"):
            write(kind, tmp_path / "pipe", "text")
        with pytest.raises(ValueError, match="not an ordinary file"):
            files.read_file(tmp_path / "pipe")  # and does not wait for a writer
    else:
        other.write_text("precious")
        with pytest.raises(NotADirectoryError, match="it is a file"):
            write(kind, other, "text")
        assert other.read_text() == "precious"
        with pytest.raises(ValueError, match="it is a file, not a folder"):
            files.read_folder(other)
        photos = tmp_path / "photos"
        photos.mkdir()
        (photos / "cat.jpg").write_text("precious")
        with pytest.raises(FileExistsError, match="a folder without index"):
            write(kind, photos, "text")
        assert (photos / "cat.jpg").read_text() == "precious"


def test_a_folder_of_links_is_not_read(tmp_path):
    write("folder", tmp_path / "it", "text")
    (tmp_path / "it" / "deep" / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="deep/link is a link"):
        files.read_folder(tmp_path / "it")


def test_errors_of_other_files_keep_their_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"source\.csv"):
        with files.whole(tmp_path / "out.csv"):
            (tmp_path / "source.csv").read_text()
    assert not list(tmp_path.iterdir())


WRITER = """
    import sys
    from pathlib import Path
    from pmordinal.data import files
    kind, path, text, times = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    contents = {name: text.encode() for name in ("index", *(f"part/{k}" for k in range(20)))}
    for _ in range(times):
        if kind == "folder":
            files.write_folder(path, contents, marker="index")
        else:
            with files.whole(path) as temporary:
                temporary.write_text(text)
"""


@KINDS
def test_two_writers_and_a_reader(kind, tmp_path):
    """What is read is what one of the two wrote, always, and nothing is left beside it."""
    path = tmp_path / "it"
    write(kind, path, "a")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), kind, str(path), text, "60"]
        )
        for text in "ab"
    ]
    seen = []
    while any(writer.poll() is None for writer in writers):
        seen.append(read(kind, path))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert set(seen) <= {"a", "b"} and len(seen) > 5
    assert [p.name for p in tmp_path.iterdir()] == ["it"]


def test_an_interrupt_between_the_two_renames_brings_the_old_folder_back(tmp_path, monkeypatch):
    path = tmp_path / "it"
    write("folder", path, "old")
    rename = os.rename

    def stopped(source, target):
        rename(source, target)
        if Path(source) == path:
            monkeypatch.setattr(os, "rename", rename)
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", stopped)
    with pytest.raises(KeyboardInterrupt):
        write("folder", path, "new")
    assert read("folder", path) == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["it"]


def test_a_folder_that_is_just_being_replaced_is_waited_for(tmp_path):
    path, aside = tmp_path / "it", tmp_path / f"{files.TEMPORARY}1"
    write("folder", aside, "late")
    timer = threading.Timer(0.1, os.rename, (aside, path))
    timer.start()
    assert read("folder", path) == "late"
    timer.join()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read("folder", tmp_path / "never")


def test_making_a_folder(tmp_path):
    files.make_folder(tmp_path / "a" / "b")
    files.make_folder(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot make the folder .*there is a file of that name"):
        files.make_folder(tmp_path / "file")
