# shellcheck shell=sh
# begin.sh DIR TOOLS MACHINE UNIT SYSTEMD: has the agent run, now and after every
# boot, as a service; or under keep.sh where systemd is not.
set -e
dir=$1 tools=$1/tools/$2 machine=$3 unit=$4
"$tools/bijou" install --dir "$tools" >/dev/null
# call PATH: makes the program that Juju has there, whichever binary the agent runs by then; what is
# another program's stays.
call() {
	[ ! -e "$1" ] || grep -qs '^# bijou$' "$1" || return 0
	mkdir -p "${1%/*}"
	# shellcheck disable=SC2016 # it expands them when it is called
	printf '#!/bin/sh\n# bijou\nfor j in "%s"/tools/*/%s; do exec "$j" "$@"; done\n' "$dir" "${1##*/}" >"$1.new"
	chmod 755 "$1.new"
	mv -f "$1.new" "$1"
}
call "/var/lib/juju/tools/machine-$machine/jujud" # charm libraries look for Juju's version there
for exec in /usr/bin/juju-exec /usr/bin/juju-run; do
	# A host whose /usr cannot be written lacks them; its agent runs all the same.
	(call "$exec") || echo "cannot write $exec: charms' cron jobs and services may look for it there" >&2
done
if [ -d "$5" ]; then
	echo "$unit" >"$dir/service.new" # before the unit is there: what end.sh has to remove
	sync "$dir/service.new"
	mv -f "$dir/service.new" "$dir/service"
	sync "$dir"
	"$tools/bijou" install --systemd --env "$dir" --machine "$machine" >/dev/null
	systemctl --quiet enable "$unit"
	systemctl reset-failed "$unit" 2>/dev/null || :
	systemctl --no-block start "$unit"
elif flock -n "$dir/keep.lock" true; then
	rm -f "$dir/keep.pid" # of one that was killed
	env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 setsid sh "$dir/keep.sh" "$dir" "$tools" "$machine" </dev/null >/dev/null 2>&1 &
	tries=0
	# It writes that file when it has the lock. To ask for the lock here would keep it from the
	# keeper, which tries as often as this loop.
	until [ -s "$dir/keep.pid" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || { echo "the agent's keeper does not come up" >&2; exit 1; }
		sleep 0.1
	done
fi
