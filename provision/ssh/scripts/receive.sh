# shellcheck shell=sh
# receive.sh FILE MODE SHA256: writes stdin to a temporary file, and renames it to the file if its digest is
# right. Otherwise it removes the temporary file.
set -e
umask 077
part=$(mktemp "$1.part-XXXXXX")
trap 'rm -f "$part"' EXIT
trap 'exit 1' HUP INT TERM PIPE
cat >"$part"
sum=$(sha256sum <"$part" | cut -d' ' -f1)
[ "$sum" = "$3" ] || { echo "its sha256 is $sum after the copy, and not $3" >&2; exit 4; }
chmod "$2" "$part"
sync "$part"
mv -f "$part" "$1"
sync "$(dirname "$1")"
