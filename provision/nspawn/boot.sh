#!/bin/sh
# boot.sh [GROUP...] -- DIR SOCKET NSPAWN...: starts a container in these control groups. Descriptor 3 is the
# lock of the instance. It is closed once the shell is in the groups, in which other processes find the
# container. The container's root and systemd-nspawn's own files are mounted in a private namespace, so that
# they are unmounted when the container ends. boot.go prepares the directory, and waits for the boot.
set -e
umask 022
while [ "$1" != -- ]; do
	echo $$ >"$1/cgroup.procs"
	shift
done
shift
cd "$1"
export NOTIFY_SOCKET="$2"
shift 2
set -- unshare --mount --propagation private -- /bin/sh -ec '
	mkdir -p /run/systemd/nspawn
	mount -t tmpfs tmpfs /run/systemd/nspawn
	mount -t overlay overlay -o lowerdir=base,upperdir=up,workdir=work root
	exec "$@"' sh "$@"
if [ -n "$STAY" ]; then exec "$@"; fi
"$@" </dev/null 3<&- &
