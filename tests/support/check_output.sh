#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program prints the lines of a file; those that begin with # say where the others come from.
#   check_output.sh EXPECTED PROGRAM [ARGUMENT...]
set -euo pipefail
expected=$1
shift
said=$("$@") || { printf 'FAILED: status %s\n%s\n' $? "$said"; exit 1; }
diff --label expected --label printed -u <(grep -v '^#' "$expected") - <<<"$said"
