#!/usr/bin/env bash
# world.sh DIR CGROUP...: the world of one fleet, until stdin ends. Its first process is
# "cat". When it exits, the kernel ends all other processes, mounts and interfaces.
dir=$1
shift
unshare --mount --net --pid --fork --mount-proc -- bash -ec '
	mount -t tmpfs tmpfs /run
	ip link set lo up
	ip link add br0 type bridge
	ip addr add 10.77.0.254/24 dev br0
	ip link set br0 up
	echo ready
	exec cat >/dev/null'
for group; do
	[[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} \;
done
rm -rf "$dir"
