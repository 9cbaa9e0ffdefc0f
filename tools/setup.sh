#!/bin/sh
# Creates the environment $1 with pmordinal (editable) and its development tools.
set -eu
venv=$1

suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null
}

python=
for candidate in ${PYTHON:-python3 python3.13 python3.12}; do
    if suitable "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "pmordinal needs Python 3.12 or newer, and none was found as ${PYTHON:-python3, python3.13 or python3.12}: install Python 3.13 (or point PYTHON= at one) and call make again." >&2
    exit 1
fi

if command -v uv >/dev/null 2>&1; then
    [ -x "$venv/bin/python" ] || uv venv --quiet --python "$("$python" -c 'import sys; print(sys.executable)')" "$venv"
    uv pip install --quiet --python "$venv/bin/python" -e . --group dev
else
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e . --group dev
fi
