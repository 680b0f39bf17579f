# Opens a window for a hook in an operator's tmux session, with the hook's environment and tools. Waits for the
# window's shell, and exits with the shell's exit code, which counts as the hook's. Arguments: SOCKET HOOK FILE.
socket=$1 hook=$2 file=$3
dir=$(mktemp -d) || exit 1
# If this script is ended, also close the window, even while tmux makes it. Find the window by its start command.
trap 'tmux -S "$socket" list-windows -a -F "#{window_id} #{pane_start_command}" 2>/dev/null | grep -F "$dir/window" |
	while read -r window _; do tmux -S "$socket" kill-window -t "$window"; done; rm -rf "$dir"' EXIT
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
trap 'exit 1' HUP TERM # the window was closed: ignore the exit code of the shell
. "$dir/environment" || exit 1
cd "$JUJU_CHARM_DIR"
cat "$dir/intro"
/bin/bash --rcfile "$dir/bashrc" -i
echo \$? >"$dir/code"
END
tmux -S "$socket" new-window -t debug: -n "$hook" /bin/bash "$dir/window" || exit 1
tmux -S "$socket" wait-for "$dir"
[ -s "$dir/code" ] && exit "$(cat "$dir/code")"
echo "the debug session ended before the hook did" >&2
exit 1
