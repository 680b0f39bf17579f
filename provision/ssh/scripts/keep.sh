# shellcheck shell=sh
# keep.sh DIR TOOLS MACHINE: runs the agent of a machine, again and again, where no
# systemd does. One at a time; the lock is the keeper's and not the agent's.
exec 9>>"$1/keep.lock"
tries=0
until flock -n 9; do # who only looks has it for a moment
	tries=$((tries + 1))
	[ "$tries" -lt 20 ] || exit 0
	sleep 0.1 9>&-
done
echo $$ >"$1/keep.pid.new" && mv "$1/keep.pid.new" "$1/keep.pid"
child='' ended='' pause=1
trap 'ended=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM

# await returns when the child has ended, which it is told to if the keeper is: with
# its exit code, if it was not.
await() {
	child=$!
	[ -n "$ended" ] || wait "$child"
	code=$?
	while [ -n "$ended" ] && kill "$child" 2>/dev/null; do # again: a process that was just made may miss one
		sleep 0.2 9>&-
	done
	return $code
}
while [ -z "$ended" ] && [ -e "$1/keep.sh" ]; do
	began=$(date +%s)
	"$2/machine-agent" --machine "$3" --env "$1" >>"$1/machines/$3/agent.log" 2>&1 9>&- &
	await && exit 0 # it has nothing to do any more
	[ -z "$ended" ] || exit 0
	[ $(($(date +%s) - began)) -lt 60 ] || pause=1
	sleep $pause 9>&- &
	await
	pause=$((pause < 150 ? pause * 2 : 300))
done
