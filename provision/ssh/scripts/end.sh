# shellcheck shell=sh
# end.sh ROOT UUID MACHINE MARK: ends the agent and whatever its hooks have left
# running, and removes all of the environment's machine; the mark goes last, so that
# a removal that was cut off is repeated. Of a host with another mark, nothing; and
# nothing of another machine, since the environment's machine 0 may be this host, too.
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

# of prints the ids of processes that have the environment's uuid and the machine's
# id in theirs: its hooks, and what they have started.
of() {
	for p in /proc/[0-9]*; do
		if [ "$(tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -xc -e "JUJU_ENV_UUID=$1" -e "JUJU_MACHINE_ID=$2")" = 2 ]; then echo "${p#/proc/}"; fi
	done
}

# short prints the first digits of a text's sha256, as agents name their sockets' folders.
short() { printf %s "$1" | sha256sum | cut -c1-8; }

# gone ends processes, whose ids the command prints: asked first, then killed.
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
# That of providers is left to machine 0, if this is its host.
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
