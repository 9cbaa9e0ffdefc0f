#!/bin/sh
# Runs the fast tests with the lowest versions that pyproject.toml allows, in the environment $1 (default .venv-min);
# further arguments go to pytest. The newest ones are what `make test` uses. PYTHON= picks the interpreter.
set -eu
venv=${1:-.venv-min}
[ $# -eq 0 ] || shift

if ! command -v uv >/dev/null 2>&1; then
    tools=$venv.uv  # pip cannot choose lowest versions, uv can
    [ -x "$tools/bin/uv" ] || { "${PYTHON:-python3}" -m venv "$tools" && "$tools/bin/pip" install --quiet uv; }
    PATH="$PWD/$tools/bin:$PATH"
fi
python=${PYTHON:-$(ls -d "$(pyenv root 2>/dev/null)"/versions/3.12.*/bin/python 2>/dev/null | tail -n 1)}
[ -x "$venv/bin/python" ] || uv venv --quiet --python "${python:-3.12}" "$venv"

# The package at its lowest; what only the tests need at its newest that goes with that.
uv pip install --quiet --python "$venv/bin/python" --resolution lowest-direct -e ".[zarr]"
uv pip freeze --quiet --python "$venv/bin/python" --exclude-editable > "$venv/lowest.txt"
uv pip install --quiet --python "$venv/bin/python" --constraint "$venv/lowest.txt" --group test
"$venv/bin/python" -m pytest "$@"
