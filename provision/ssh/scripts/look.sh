# shellcheck shell=sh
# look.sh ROOT UUID SYSTEMD: prints the host's hardware, its mark, and whether the agent is running, as lines
# KEY=VALUE. It changes nothing.
root=$1 dir=$1/$2 systemd=$3
echo "arch=$(uname -m)"
echo "cores=$(nproc 2>/dev/null || grep -c '^processor' /proc/cpuinfo)"
awk '/^MemTotal:/ { print "memory=" int($2 / 1024) }' /proc/meminfo
place=$root
while [ ! -d "$place" ]; do place=$(dirname "$place"); done
df -Pm "$place" | awk 'NR == 2 { print "disk=" $2; print "free=" $4 }'
[ ! -d "$systemd" ] || echo "systemd=yes"
[ ! -s "$root/managed-by.json" ] || echo "mark=$(cat "$root/managed-by.json")"
if [ -s "$dir/service" ]; then
	case $(systemctl show --property=ActiveState --value "$(cat "$dir/service")" 2>/dev/null) in
	active | activating | reloading | deactivating) echo "runs=yes" ;;
	esac
elif [ -e "$dir/keep.lock" ] && ! flock -n "$dir/keep.lock" true; then
	echo "runs=yes"
fi
exit 0
