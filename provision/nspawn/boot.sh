#!/bin/sh
# boot.sh [GROUP...] -- DIR SOCKET NSPAWN...: leaves a container running, in these
# control groups. Descriptor 3 is the lock on the instance, which may go once the
# container is where others find it. Its root is mounted where nobody but the
# container has it, so that it goes with the container; so do the notes of
# systemd-nspawn, which nobody else reads.
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
