#!/bin/sh
# Sets batchviz up from this folder, once and without a network, then opens the page.
# With words behind it, it carries out a command instead: sh start.sh doctor
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
venv="$here/venv-$(uname -s)"

python=''
for candidate in @CANDIDATES@ python3 python; do
  if command -v "$candidate" >/dev/null 2>&1 &&
    "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] not in (@TUPLES@,))' >/dev/null 2>&1; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "Python @VERSIONS@ is needed and was not found; install it, then start this again" >&2
  exit 1
fi

if [ ! -f "$venv/ready" ]; then
  echo "setting batchviz up, once; this takes a minute or two"
  rm -rf "$venv"
  if ! "$python" -m venv "$venv"; then
    echo "no environment could be made in $here; copy the folder to this laptop's own disk (on Debian and Ubuntu python3-venv is needed, too)" >&2
    exit 1
  fi
  "$venv/bin/python" -m pip --isolated install --quiet --disable-pip-version-check --no-index \
    --find-links "$here/wheels" -r "$here/project/requirements.txt"
  : >"$venv/ready"
fi

export BATCHVIZ_CACHE="$here/weights" HF_HUB_OFFLINE=1 PYTHONPATH="$here/project"
[ $# -gt 0 ] || set -- app
exec "$venv/bin/python" -m batchviz "$@"
