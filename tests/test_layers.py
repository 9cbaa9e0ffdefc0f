"""Imports point strictly down the layers, and siblings do not know each other."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "pmordinal"
# Where a module or a folder stands; what is not listed stands with PyMC and ArviZ.
LAYERS = {
    0: "foreign levels labels columns features checks linalg distances exponential quadrature registry errors threads "
    "jit lettering rows files transport routines",
    1: "links gram",
    2: "smoothing likelihood posterior starts filtering sweeps sites tails truncated tilting boxed whitening",
    3: "engines objectives",
    5: "cli sklearn report bench __main__",
}
LEVEL = {name: level for level, names in LAYERS.items() for name in names.split()}
DEFAULT = 4
CLOSED = ("links", "gram", "engines", "objectives")  # folders whose files know only their base
HEAVY = ("pymc", "arviz", "xarray", "pytensor", "arviz_base", "arviz_stats", "arviz_plots")
MODULES = sorted(ROOT.rglob("*.py"))


def parts_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


NAMES = {parts_of(path) for path in MODULES}


def is_type_checking(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def imports(path):
    """Yield the parts of each imported name below pmordinal, and whether it is inside a function."""
    folder = path.parent.relative_to(ROOT.parent).parts

    def walk(node, inside):
        for child in ast.iter_child_nodes(node):
            if is_type_checking(child):
                continue
            within = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            if isinstance(child, ast.Import):
                for alias in child.names:
                    if alias.name.split(".")[0] == "pmordinal":
                        yield tuple(alias.name.split(".")[1:]), within
            elif isinstance(child, ast.ImportFrom):
                module = child.module.split(".") if child.module else []
                if child.level:
                    module = [*folder[: len(folder) - child.level + 1], *module]
                if module[0] == "pmordinal":
                    for alias in child.names:
                        full = (*module[1:], alias.name)
                        yield (full if full in NAMES else tuple(module[1:])), within
            yield from walk(child, within)

    yield from walk(ast.parse(path.read_text()), False)


def external(tree):
    """Yield the top-level packages that a module imports when it is loaded."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def level(parts):
    return LEVEL.get(parts[0], DEFAULT)


def module_id(path):
    return ".".join(parts_of(path)) or "pmordinal"


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_imports_point_down(path):
    here = parts_of(path)
    if not here:
        pytest.skip("the package root gathers the public names")
    is_init = path.name == "__init__.py"
    for there, _ in imports(path):
        said = f"{'.'.join(here)} imports pmordinal.{'.'.join(there)}"
        assert there, f"{said}: the package root is for users, import the module"
        same_folder = there[0] == here[0] and (len(here) > 1 or is_init)
        if here[0] == "modl":
            assert same_folder or level(there) == 0, f"{said}: modl stands beside, it uses L0 only"
        elif same_folder:
            if here[0] in CLOSED and not is_init:
                assert there == (here[0], "base"), f"{said}: siblings know only their base"
        elif level(here) == level(there) == DEFAULT or level(here) == level(there) in (0, 2, 5):
            pass  # within a layer of files; cycles are the next test's
        else:
            assert level(there) < level(here), f"{said}: it stands above"


def test_modules_form_no_cycle():
    """Imports at load time, within the layers too."""
    graph = {}
    for path in MODULES:
        here = parts_of(path)
        if here:
            graph[here] = {there for there, inside in imports(path) if not inside and there != here}
            graph[here] -= {here[:1]}  # a file and its folder's __init__ are one
    done, path_now = set(), []

    def visit(node):
        assert node not in path_now, f"cycle: {[*path_now[path_now.index(node) :], node]}"
        if node in done:
            return
        path_now.append(node)
        for there in graph.get(node, ()):
            visit(there)
        done.add(path_now.pop())

    for node in graph:
        visit(node)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if parts_of(p) and level(parts_of(p)) < 4], ids=module_id
)
def test_only_the_upper_layers_know_pymc(path):
    """gram/ knows pm.gp.cov and PyTensor, links take `xp`; nothing else below knows them."""
    here = parts_of(path)
    found = {name for name in external(ast.parse(path.read_text())) if name in HEAVY}
    allowed = {"pymc", "pytensor"} if here[0] == "gram" else set()
    assert found <= allowed, f"{'.'.join(here)} imports {sorted(found - allowed)}"


@pytest.mark.parametrize("path", [p for p in MODULES if "modl" in parts_of(p)], ids=module_id)
def test_modl_does_not_need_pymc_to_load(path):
    tree = ast.parse(path.read_text())
    top = ast.Module([n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)], [])
    assert not {"pymc", "pytensor"} & set(external(top))
