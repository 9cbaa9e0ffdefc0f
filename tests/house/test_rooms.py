"""Who may import whom. Imports inside functions count; those for type checkers do not."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "pmordinal"
# One line a room: what it may import besides itself and what is everyone's. The docs show the same table.
ROOMS = {
    "data": "",
    "linalg": "",
    "links": "",
    "gram": "linalg",
    "likelihood": "links linalg",
    "posterior": "gram likelihood linalg",
    "engines": "posterior gram likelihood links linalg",
    "model": "engines posterior gram likelihood links linalg data",
    "results": "engines posterior gram likelihood links linalg data",
    "inference": "model results engines posterior gram likelihood links linalg data",
    "diagnostics": "inference model results engines links data",
    "modl": "data",
    "plots": "diagnostics results links modl data",
}
EVERYONES = "checks registry errors words jit".split()
FRONT = "report cli bench sklearn datasets __main__".split()  # may import all
HEAVY = {"pymc", "pytensor", "arviz", "arviz_base", "arviz_stats", "arviz_plots", "xarray"}
# What rooms know of the ecosystem, where it is less than everything.
KNOWS = {"linalg": set(), "links": set(), "gram": {"pymc", "pytensor"}, "likelihood": set()}
KNOWS |= {"posterior": set(), "engines": set(), "modl": {"xarray", "arviz"}}
MOST_FLOORS, MOST_FLAT = 10, 12


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def nodes(tree):
    """Yield all nodes but those for type checkers."""
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"):
            yield child
            yield from nodes(child)


def imported(path):
    """Yield the full name of everything that a module imports."""
    for node in nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: write the import from pmordinal on"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(path):
    """Yield the modules of the package that a module imports."""
    for full in imported(path):
        top, _, rest = full.partition(".")
        if top == "pmordinal":
            yield rest if rest in MODULES else rest.rpartition(".")[0]


GRAPH = {name: set(ours(path)) - {name} for name, path in MODULES.items() if name}


def room(name):
    return name.split(".")[0]


@pytest.mark.parametrize("name", [name for name in GRAPH if room(name) in ROOMS])
def test_a_module_imports_what_its_room_may(name):
    allowed = {room(name), *ROOMS[room(name)].split(), *EVERYONES}
    wrong = sorted(there for there in GRAPH[name] if room(there) not in allowed)
    assert not wrong, f"{name} imports {wrong}; its room may import {sorted(allowed)}"


def test_every_module_has_a_room():
    assert {room(name) for name in GRAPH} == {*ROOMS, *EVERYONES, *FRONT}
    assert len([path for path in ROOT.glob("*.py") if path.stem[0] != "_"]) <= MOST_FLAT


def test_what_is_everyones_imports_nobody():
    for name in EVERYONES:
        assert not GRAPH[name] - {"registry", "errors", "words"}, name


def test_modules_form_no_cycle():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(f"cycle of imports: {' <- '.join(error.args[1])}")


def test_rooms_form_no_cycle_and_few_floors():
    order = TopologicalSorter({name: set(may.split()) for name, may in ROOMS.items()})
    floor = {}
    for name in order.static_order():
        floor[name] = 1 + max((floor[there] for there in ROOMS[name].split()), default=0)
    assert max(floor.values()) + 1 <= MOST_FLOORS  # and the front on top


@pytest.mark.parametrize("name", [name for name in GRAPH if room(name) in KNOWS])
def test_lower_rooms_know_little_of_the_ecosystem(name):
    """Numerical rooms work on arrays; of PyMC gram/ knows the covariances."""
    found = {full.split(".")[0] for full in imported(MODULES[name])} & HEAVY
    assert found <= KNOWS[room(name)], f"{name} imports {sorted(found)}"


def test_algorithms_do_not_know_each_other():
    """Files of links/ and engines/ know their base, and an algorithm's folder knows itself."""
    for name, there in GRAPH.items():
        if room(name) in ("links", "engines") and name != room(name):
            family = ".".join(name.split(".")[:2])
            siblings = {t for t in there if room(t) == room(name) and not t.startswith(family)}
            assert siblings <= {f"{room(name)}.base"}, f"{name} imports {sorted(siblings)}"


def test_the_docs_show_this_table():
    page = (ROOT.parent / "docs" / "architecture.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    shown = {name.strip(" `"): may.replace("`", "").split() for _, name, _, may, _ in rows}
    expected = {name: may.split() or ["nothing"] for name, may in ROOMS.items()}
    assert shown == expected
