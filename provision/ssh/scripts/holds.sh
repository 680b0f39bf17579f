# shellcheck shell=sh
# holds.sh FILE SHA256: prints yes if the file has that digest.
[ ! -f "$1" ] || [ "$(sha256sum <"$1" | cut -d' ' -f1)" != "$2" ] || echo yes
