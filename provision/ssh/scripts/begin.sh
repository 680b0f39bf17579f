# shellcheck shell=sh
# begin.sh DIR TOOLS MACHINE UNIT SYSTEMD: starts the agent as a service, which also starts after each
# boot. Without systemd, it starts the agent under keep.sh.
set -e
dir=$1 tools=$1/tools/$2 machine=$3 unit=$4
"$tools/bijou" install --dir "$tools" >/dev/null
# call PATH: writes a script in place of Juju's program, which runs the applet of the present binary. A
# file of another program stays.
call() {
	[ ! -e "$1" ] || grep -qs '^# bijou$' "$1" || return 0
	mkdir -p "${1%/*}"
	# shellcheck disable=SC2016 # the script expands them
	printf '#!/bin/sh\n# bijou\nfor j in "%s"/tools/*/%s; do exec "$j" "$@"; done\n' "$dir" "${1##*/}" >"$1.new"
	chmod 755 "$1.new"
	mv -f "$1.new" "$1"
}
call "/var/lib/juju/tools/machine-$machine/jujud" # charm libraries call it to find out Juju's version
for exec in /usr/bin/juju-exec /usr/bin/juju-run; do
	# If /usr is read-only, they are missing, and the agent runs without them.
	(call "$exec") || echo "cannot write $exec: charms' cron jobs and services may look for it there" >&2
done
if [ -d "$5" ]; then
	# The unit is recorded before it is installed, so that end.sh can always remove it.
	echo "$unit" >"$dir/service.new"
	sync "$dir/service.new"
	mv -f "$dir/service.new" "$dir/service"
	sync "$dir"
	"$tools/bijou" install --systemd --env "$dir" --machine "$machine" >/dev/null
	systemctl --quiet enable "$unit"
	systemctl reset-failed "$unit" 2>/dev/null || :
	systemctl --no-block start "$unit"
elif flock -n "$dir/keep.lock" true; then
	rm -f "$dir/keep.pid" # a killed keeper can have left it
	env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 setsid sh "$dir/keep.sh" "$dir" "$tools" "$machine" </dev/null >/dev/null 2>&1 &
	tries=0
	# The keeper writes that file when it has the lock. This loop does not test the lock itself, since that
	# could keep the keeper from getting it.
	until [ -s "$dir/keep.pid" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || { echo "keep.sh, which runs the agent, does not start" >&2; exit 1; }
		sleep 0.1
	done
fi
