# SPDX-License-Identifier: Apache-2.0
# find_torchrun SOURCE: sets `torchrun` to the first that works: the one named in ACCRUE_TORCHRUN, that of PATH, that of python_tools.py's
# environment in SOURCE's build folder, that of the wheel (LIBTORCH) with this machine's Python. If none does, it says why and ends the test as skipped.
find_torchrun() {
  local each why
  for each in "${ACCRUE_TORCHRUN:-}" "$(command -v torchrun || true)" "$1/build/python-tools/bin/torchrun"; do
    [ -x "$each" ] && timeout 100 "$each" --help >/dev/null 2>&1 && torchrun=("$each") && return
  done
  why=$(PYTHONPATH=$LIBTORCH timeout 100 python3 -m torch.distributed.run --help 2>&1 >/dev/null | tail -n 1) || true
  torchrun=(env PYTHONPATH="$LIBTORCH" python3 -m torch.distributed.run)
  [ -n "$why" ] || return 0
  printf 'SKIPPED: no torchrun here: none is named in ACCRUE_TORCHRUN, none is in PATH, and the wheel'"'"'s does not start (%s)\n' "$why"
  exit 77
}
