# shellcheck shell=sh
# keep.sh DIR TOOLS MACHINE: runs a machine's agent, and restarts it when it exits, on a host without systemd.
# The lock makes sure that only one keeper runs. The agent does not inherit it.
exec 9>>"$1/keep.lock"
tries=0
# A process that tests the lock holds it for a moment.
until flock -n 9; do
	tries=$((tries + 1))
	[ "$tries" -lt 20 ] || exit 0
	sleep 0.1 9>&-
done
echo $$ >"$1/keep.pid.new" && mv "$1/keep.pid.new" "$1/keep.pid"
child='' ended='' pause=1
trap 'ended=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM

# await waits for the child, and returns its exit code. If the keeper has got SIGTERM, it ends the child.
await() {
	child=$!
	[ -n "$ended" ] || wait "$child"
	code=$?
	# A process that was just started can miss a signal.
	while [ -n "$ended" ] && kill "$child" 2>/dev/null; do
		sleep 0.2 9>&-
	done
	return $code
}
while [ -z "$ended" ] && [ -e "$1/keep.sh" ]; do
	began=$(date +%s)
	"$2/machine-agent" --machine "$3" --env "$1" >>"$1/machines/$3/agent.log" 2>&1 9>&- &
	await && exit 0 # the machine is gone
	[ -z "$ended" ] || exit 0
	[ $(($(date +%s) - began)) -lt 60 ] || pause=1
	sleep $pause 9>&- &
	await
	pause=$((pause < 150 ? pause * 2 : 300))
done
