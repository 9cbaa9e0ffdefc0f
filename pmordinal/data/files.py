"""Reading and writing of local files: a file or folder is written completely or not at all.

New content is written under a temporary name beside the target, which it replaces at the end. So several processes may
write to one target: the last one wins. If the target is a link, the file that it leads to is replaced. Only ordinary
files are read, no pipes or devices.
"""

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one letter is a Windows drive
TEMPORARY = ".pmordinal-"
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)  # errors of a rename onto what exists
PATIENCE = 10.0  # seconds to wait until a folder is no longer being replaced


def local(path: str | os.PathLike[str]) -> Path:
    """Return a local path, with ``~`` for the home folder; refuse addresses such as ``https://…``.

    Parameters
    ----------
    path : str or path

    Examples
    --------
    >>> local("s3://bucket/fit.zarr")
    Traceback (most recent call last):
    ValueError: s3://bucket/fit.zarr is an address: only files of this machine are read and written, give a path
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path must be text or a pathlib.Path, got {path!r}")
    if "\0" in text:
        raise ValueError(f"a path cannot hold a NUL character, got {text!r}")
    if ADDRESS.match(text):  # pathlib turns :// into :/, but a folder may be named "s3:"
        if "://" in text or not Path(text.split("/")[0]).is_dir():
            raise ValueError(
                f"{text} is an address: only files of this machine are read and written, give a path"
            )
    return Path(os.path.expanduser(text))


def printable(path: str | os.PathLike[str]) -> str:
    r"""Return a path as printable text, even if its name has undecodable bytes.

    Examples
    --------
    >>> printable("caf\udce9.csv")
    'caf\\udce9.csv'
    """
    return str(path).encode("utf-8", "backslashreplace").decode()


def target(path: Path, marker: str | None = None) -> Path:
    """Return the real path that `path` leads to, links followed; raise if it cannot be written.

    Parameters
    ----------
    path : Path
    marker : str, optional
        For a folder: a file that each folder of this kind contains, so that no other folder is replaced.
    """
    real = Path(os.path.realpath(path))
    parent = real.parent if path.is_symlink() else path.parent
    if not parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {parent}")
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: the folder {parent} is read-only")
    while (before := _state(real)) is not None:
        with suppress(FileNotFoundError):  # another process is replacing it
            reason = _reason_against(path, real, marker)
            if reason is None:
                break
            if _state(real) == before:
                raise reason
    return real


def _reason_against(path: Path, real: Path, marker: str | None) -> OSError | None:
    """Return why what is there must not be replaced; None if it may be."""
    if not real.stat().st_mode & 0o222 or not os.access(real, os.W_OK):
        return PermissionError(f"cannot write {path}: it is read-only")
    if marker is None:
        if real.is_dir():
            return IsADirectoryError(f"cannot write {path}: it is a folder")
        if not real.is_file():
            return OSError(f"cannot write {path}: it is not an ordinary file")
    elif not real.is_dir():
        return NotADirectoryError(
            f"cannot write {path}: it is a file, and this kind is a folder: remove it"
        )
    elif any(real.iterdir()) and not (real / marker).exists():
        return FileExistsError(
            f"cannot write {path}: it is a folder without {marker}, so that other things are in it: "
            "choose another name"
        )
    return None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces `path` if nothing was raised.

    Parameters
    ----------
    path : Path
        A file; the temporary path has its suffix.
    """
    real = target(path)
    temporary = _beside(real)
    try:
        with _named(path, temporary):
            yield temporary
            _keep_mode(real, temporary)
            os.replace(temporary, real)
    finally:
        temporary.unlink(missing_ok=True)


def write_folder(path: Path, files: Mapping[str, bytes], marker: str) -> None:
    """Write a folder of files; an older one is replaced completely or not at all.

    Parameters
    ----------
    path : Path
    files : mapping of str to bytes
        Contents by name, such as ``"fit/X/zarr.json"``.
    marker : str
        See `target`.
    """
    real = target(path, marker)
    new = _beside(real)
    aside: list[Path] = []
    is_done = False
    try:
        with _named(path, new):
            for name, content in files.items():
                file = new / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            _keep_mode(real, new)
            _move(new, real, aside)
        is_done = True
    finally:
        if not is_done and aside and aside[-1].exists() and not os.path.lexists(real):
            with suppress(OSError):  # another process has put a newer one there
                os.rename(aside[-1], real)  # interrupted: restore the old one
        for folder in (new, *aside):
            shutil.rmtree(folder, ignore_errors=True)


def _move(new: Path, real: Path, aside: list[Path]) -> None:
    """Rename a folder to its final name; an older one is renamed first, as folders cannot be overwritten."""
    while True:
        try:
            return os.rename(new, real)
        except OSError as error:
            if error.errno not in TAKEN:
                raise
        aside.append(_beside(real))
        with suppress(FileNotFoundError):  # another process has moved it
            os.rename(real, aside[-1])


def make_folder(path: Path) -> None:
    """Make a folder with its parents, unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "there is a file of that name" if path.exists() else error.strerror
        raise OSError(f"cannot make the folder {path}: {why}") from error


def read_file(path: Path) -> bytes:
    """Return the content of a file; raise if it is a pipe, a device or a folder."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_dir():
        raise ValueError("it is a folder, not a file")
    with open(os.open(path, flags), "rb") as file:  # does not block on a pipe
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not an ordinary file")
        return file.read()


def read_folder(path: Path) -> dict[str, bytes]:
    """Return the files of a folder by name, all from one version of it; raise if it has links.

    A folder that `write_folder` replaces in the meantime is read again.
    """
    end = time.monotonic() + PATIENCE
    while True:
        before = _state(path)
        late = time.monotonic() > end
        if before is None:
            is_replaced = any(path.parent.glob(f"{TEMPORARY}*"))
            if late or not (is_replaced or path.exists()):  # it may just have come back
                raise FileNotFoundError(f"there is no file {path}")
        elif path.is_file():  # not "is no folder": it may be gone for a moment
            raise ValueError("it is a file, not a folder")
        else:
            with suppress(FileNotFoundError):  # it was replaced while it was read
                files = dict(_contents(path, ""))
                if _state(path) == before:
                    return files
        if late:
            raise OSError("it changes all the time: read it when nobody writes to it")
        time.sleep(0.002)


def _contents(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.is_symlink():
                raise ValueError(f"{name} is a link, and may lead anywhere")
            if entry.is_dir(follow_symlinks=False):
                yield from _contents(folder / entry.name, f"{name}/")
            else:
                yield name, read_file(folder / entry.name)


def _state(path: Path) -> tuple[int, ...] | None:
    """Return numbers that change when a folder is replaced by another one; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns


def _beside(real: Path) -> Path:
    """Return a new temporary name in the same folder, short enough for any file system."""
    return real.with_name(f"{TEMPORARY}{uuid4().hex}{real.suffix}")


def _keep_mode(old: Path, new: Path) -> None:
    """Give the new file or folder the permissions of the old one, if there is one."""
    with suppress(FileNotFoundError):
        os.chmod(new, stat.S_IMODE(old.stat().st_mode))


@contextmanager
def _named(path: Path, temporary: Path) -> Iterator[None]:
    """Raise system errors about the temporary path with the user's path instead."""
    try:
        yield
    except OSError as error:
        where = error.filename
        if error.errno is None or (where and not str(where).startswith(str(temporary))):
            raise
        raise OSError(f"cannot write {path}: {error.strerror}") from error
