# shellcheck shell=sh
# prepare.sh DIR TOOLS MACHINE: creates the environment's directories. Other users can pass through them, so
# that programs that a charm runs as another user find the charm.
set -e
umask 077
mkdir -p "$1/credentials"
mkdir -p "$1/tools/$2" "$1/machines/$3"
chmod 711 "$1"
chmod 755 "$1/tools" "$1/tools/$2" "$1/machines" "$1/machines/$3"
sync "$1/.." "$1" "$1/tools" "$1/machines" # a directory is durable once its parent is synced
# Interrupted starts can have left partial files.
find "$1/tools/$2" "$1/credentials" -name '*.part-*' -mmin +60 -exec rm -f {} +
