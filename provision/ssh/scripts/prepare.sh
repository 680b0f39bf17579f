# shellcheck shell=sh
# prepare.sh DIR TOOLS MACHINE: makes the environment's folders. Others may pass
# through, so that what a charm runs as another user finds the charm.
set -e
umask 077
mkdir -p "$1/credentials"
mkdir -p "$1/tools/$2" "$1/machines/$3"
chmod 711 "$1"
chmod 755 "$1/tools" "$1/tools/$2" "$1/machines" "$1/machines/$3"
sync "$1/.." "$1" "$1/tools" "$1/machines" # a folder lasts once its parent is on the disk
# What a start was cut off in.
find "$1/tools/$2" "$1/credentials" -name '*.part-*' -mmin +60 -exec rm -f {} +
