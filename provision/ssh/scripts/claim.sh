# shellcheck shell=sh
# claim.sh ROOT MARK: marks the host unless it has a mark, and prints the mark that it has then. A hard link
# is created atomically, and never replaces a file.
set -e
umask 022
mkdir -p "$1"
draft=$(mktemp "$1/mark-XXXXXX")
trap 'rm -f "$draft"' EXIT
trap 'exit 1' HUP INT TERM PIPE
printf '%s\n' "$2" >"$draft"
sync "$draft"
ln "$draft" "$1/managed-by.json" 2>/dev/null || :
sync "$1/.." "$1"
cat "$1/managed-by.json"
