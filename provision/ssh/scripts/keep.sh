# keep.sh DIR TOOLS MACHINE: runs the agent of a machine, again and again, where no
# systemd does. One at a time; the lock is the keeper's and not the agent's.
exec 9>>"$1/keep.lock"
flock -n 9 || exit 0
echo $$ >"$1/keep.pid"
child='' pause=1
trap 'trap "" TERM; kill $child 2>/dev/null; wait; exit 0' TERM
while :; do
	"$2/machine-agent" --machine "$3" --env "$1" >>"$1/machines/$3/agent.log" 2>&1 9>&- &
	child=$!
	began=$(date +%s)
	wait $child && exit 0 # it has nothing to do any more
	[ $(($(date +%s) - began)) -lt 60 ] || pause=1
	sleep $pause 9>&- &
	child=$!
	wait $child
	pause=$((pause < 150 ? pause * 2 : 300))
done
