"""The names on other projects' pages, to link to: fetched at each build, kept for builds without network."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sphinx.util import requests

BEGINNING = b"# Sphinx inventory"  # what else answers is a login page or an error


def _fetch(url, path):
    """Write the inventory of a site, if it can be had; return whether there is one, of today or older."""
    try:
        answer = requests.get(f"{url}objects.inv", timeout=5)
        answer.raise_for_status()
        if answer.content.startswith(BEGINNING):
            path.write_bytes(answer.content)
    except OSError:  # no network, no such site, or it is down: links wait for a better day
        pass
    return path.exists()


def mapping(pages: dict[str, str], folder: Path) -> dict[str, tuple[str, str]]:
    """Return `intersphinx_mapping` for the sites whose inventory is there; tell which are not."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.inv" for name in pages}
    with ThreadPoolExecutor(len(pages)) as pool:
        there = dict(zip(pages, pool.map(_fetch, pages.values(), paths.values()), strict=True))
    if away := [name for name in pages if not there[name]]:
        print(f"No links to the pages of {', '.join(away)}: they cannot be reached from here.")
    return {name: (url, str(paths[name])) for name, url in pages.items() if there[name]}
