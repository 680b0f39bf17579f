# shellcheck shell=sh
# end.sh ROOT UUID MACHINE MARK: stops the agent and the processes that its hooks have left running, and
# removes the machine's files. It removes the mark last, so that an interrupted removal can be repeated. It
# does nothing on a host with a different mark. It removes nothing of other machines, since the host can also
# be machine 0 of the environment.
root=$1 dir=$1/$2
[ "$(cat "$root/managed-by.json" 2>/dev/null)" = "$4" ] || exit 0
set -e
if [ -s "$dir/service" ]; then
	unit=$(cat "$dir/service")
	systemctl --quiet disable "$unit" 2>/dev/null || :
	systemctl stop "$unit" 2>/dev/null || :
	rm -f "/etc/systemd/system/$unit"
	systemctl daemon-reload
	systemctl reset-failed "$unit" 2>/dev/null || :
fi

# of UUID MACHINE: prints the PIDs of the machine's hooks and of the processes that they have started. Their
# environments contain the environment's UUID and the machine's ID.
of() {
	for p in /proc/[0-9]*; do
		if [ "$(tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -xc -e "JUJU_ENV_UUID=$1" -e "JUJU_MACHINE_ID=$2")" = 2 ]; then echo "${p#/proc/}"; fi
	done
}

# short TEXT: prints the first digits of the text's SHA-256, which agents use in the names of their sockets'
# directories.
short() { printf %s "$1" | sha256sum | cut -c1-8; }

# gone COMMAND...: ends the processes whose PIDs the command prints. It first sends SIGTERM, and later SIGKILL.
gone() {
	tries=0
	while pids=$("$@" 2>/dev/null) && [ -n "$pids" ]; do
		case $tries in
		0 | 25 | 50 | 75 | 100 | 125) kill $pids 2>/dev/null || : ;;
		150) kill -9 $pids 2>/dev/null || : ;;
		200) echo "processes do not end: $pids" >&2 && exit 1 ;;
		esac
		tries=$((tries + 1))
		sleep 0.2
	done
}
keeper() { [ ! -e "$dir/keep.lock" ] || flock -n "$dir/keep.lock" true || cat "$dir/keep.pid"; }
agent() {
	[ ! -s "$dir/machines/$1/agent.pid" ] || read -r pid _ <"$dir/machines/$1/agent.pid"
	[ -z "${pid:-}" ] || ! tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qx -- "$dir" || echo "$pid"
}
gone keeper
gone agent "$3"
gone of "$2" "$3"
rm -rf "/run/bijou/$(short "$2")-$(short "$dir/machines/$3")"
jujud=/var/lib/juju/tools/machine-$3/jujud
for call in "$jujud" /usr/bin/juju-exec /usr/bin/juju-run; do
	if grep -qsF "in \"$dir\"/tools/" "$call"; then
		rm -f "$call"
	fi
done
[ ! -d "${jujud%/*}" ] || rmdir -p "${jujud%/*}" 2>/dev/null || :
# If this host is also machine 0, the directory of the providers' sockets is still in use.
providers=/run/bijou/$(short "$2")-$(short provider)
[ "$(ls -d "/run/bijou/$(short "$2")"-* 2>/dev/null)" != "$providers" ] || rm -rf "$providers"
for bound in "$dir"/machines/*/agents/*/storage/*; do
	[ ! -L "$bound" ] || umount -l "$(readlink "$bound")" 2>/dev/null || :
done
for made in "$dir"/machines/*/storage/*; do
	umount -l "$made" 2>/dev/null || : # a tmpfs
done
rm -rf "$dir"
sync
rm -f "$root/managed-by.json"
rmdir "$root" 2>/dev/null || :
