#!/usr/bin/env bash
# boot.sh DIR TREE NAME ADDRESS CGROUP...: boots one host inside the world, and exits with
# it. The host's disk is kept for the next boot.
set -e
dir=$1 tree=$2 name=$3 address=$4
shift 4
mkdir -p "$dir"/{up,work,root}
mountpoint -q "$dir/root" || mount -t overlay overlay -o "lowerdir=$tree,upperdir=$dir/up,workdir=$dir/work" "$dir/root"
echo "$name" >"$dir/root/etc/hostname"
[[ -s $dir/root/etc/machine-id ]] || tr -d - </proc/sys/kernel/random/uuid >"$dir/root/etc/machine-id"
units=$dir/root/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
cat >"$units/fleet-network.service" <<UNIT
[Unit]
Description=the address of a test host
DefaultDependencies=no
Before=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ip addr replace $address/24 dev host0 && ip link set host0 up'
UNIT
ln -sfn ../fleet-network.service "$units/multi-user.target.wants/fleet-network.service"
for group; do
	mkdir -p "$group/$name"
	echo $$ >"$group/$name/cgroup.procs"
done
exec systemd-nspawn --quiet --boot --directory="$dir/root" --machine="$name" --network-bridge=br0 \
	--resolv-conf=off --timezone=off --register=no --keep-unit --console=pipe
