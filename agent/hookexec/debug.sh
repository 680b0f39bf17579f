# Opens a window in an operator's tmux session with everything of this hook, and
# waits for its shell, whose exit code is the hook's: SOCKET HOOK FILE.
socket=$1 hook=$2 file=$3
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"; [ -z "$window" ] || tmux -S "$socket" kill-window -t "$window" 2>/dev/null' EXIT
export -p | grep -v ' TERM=' >"$dir/environment"
cat >"$dir/intro" <<END
This is hook $hook of unit $JUJU_UNIT_NAME, in its environment and with its tools.
Run it with: ${file:-(the charm has no such hook)}
"exit 0" makes it done, and writes what was set; any other exit code makes it fail.
END
cat >"$dir/bashrc" <<END
PS1='$JUJU_UNIT_NAME:$hook % '
END
cat >"$dir/window" <<END
trap 'tmux -S "$socket" wait-for -S "$dir"' EXIT
trap 'exit 1' HUP TERM # closed: whatever the shell says then is no answer
. "$dir/environment"
cd "$JUJU_CHARM_DIR"
cat "$dir/intro"
/bin/bash --rcfile "$dir/bashrc" -i
echo \$? >"$dir/code"
END
window=$(tmux -S "$socket" new-window -P -F "#{window_id}" -t debug: -n "$hook" /bin/bash "$dir/window") || exit 1
tmux -S "$socket" wait-for "$dir"
[ -s "$dir/code" ] && exit "$(cat "$dir/code")"
echo "the debug session ended before the hook did" >&2
exit 1
