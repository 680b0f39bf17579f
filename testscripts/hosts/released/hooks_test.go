package released

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// turns is the number of times that a setting is changed and an agent is killed.
const turns = 5

// config is the hook's script. It kills forty tools at random moments. It then changes a setting that must be
// visible only after the hook. Finally it calls tools until the agent is dead or the test removes the file
// hold.
const config = `#!/usr/bin/env bash
record=%[1]s/record
turn=$(config-get turn)
[[ $turn != 0 ]] || exit 0
last=$(state-get turn)
echo "begin $turn after ${last:-0}" >>$record
for ((i = 0; i < 40; i++)); do
	state-set "half=$turn.$i" &
	tool=$!
	for ((j = RANDOM %% 300; j > 0; j--)); do :; done
	kill -9 "$tool" 2>/dev/null
	wait "$tool" 2>/dev/null
done
printf 'file: "%%0100000d"\n' "$turn" | state-set --file - || exit 1
state-set turn="$turn" || exit 1
[[ $(state-get turn) == "$turn" && $(state-get file | wc -c) == 100001 ]] || { echo "wrong $turn" >>$record; exit 1; }
echo "end $turn" >>$record
while [[ -e %[1]s/hold ]]; do
	config-get turn >/dev/null || { echo "gone $turn" >>$record; exit 1; }
done
`

func TestKilledInHooks(t *testing.T) {
	need.Whole(t)
	dir := t.TempDir()
	charm := filepath.Join(dir, "victim")
	for name, text := range map[string]string{
		"victim/metadata.yaml":        "name: victim\nsummary: is killed\ndescription: is killed\nhook-dialect: modern\n",
		"victim/config.yaml":          "options:\n  turn:\n    type: int\n    default: 0\n    description: a turn\n",
		"victim/hooks/config-changed": fmt.Sprintf(config, dir),
		"record":                      "",
	} {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), 0o755))
	}
	env := localenv.New(t, filepath.Join(dir, "home"))
	binary := versions.Current(t)
	if out, err := exec.Command(binary, "version").Output(); !strings.Contains(string(out), "\nearly client: yes\n") {
		t.Fatalf("bijou version says %q (%v)", out, err)
	}
	env.Call = []string{binary, "juju"}
	t.Cleanup(func() { env.Destroy(env.Log) })
	env.Juju("bootstrap", "--config", "update-status-interval=0")
	env.Juju("deploy", charm)
	hold, record := filepath.Join(dir, "hold"), filepath.Join(dir, "record")
	for turn := 1; turn <= turns; turn++ {
		check(t, os.WriteFile(hold, nil, 0o600))
		env.Juju("set", "victim", fmt.Sprintf("turn=%d", turn))
		awaitLine(t, record, fmt.Sprintf("end %d\n", turn))
		check(t, syscall.Kill(env.Agent(), syscall.SIGKILL))
		awaitLine(t, record, fmt.Sprintf("gone %d\n", turn))
		check(t, os.Remove(hold))
		env.Juju("start")
		awaitLine(t, record, fmt.Sprintf("gone %d\nbegin %[1]d after %d\nend %[1]d\n", turn, turn-1))
		env.Juju("wait", "--timeout", "2m")
	}
	if text, err := os.ReadFile(record); err != nil || strings.Contains(string(text), "wrong") {
		t.Errorf("the record: %v\n%s", err, text)
	}
}

func awaitLine(t *testing.T, path, line string) {
	t.Helper()
	await.Until(t, await.Poll{Limit: 3 * time.Minute}, "the hook has come to "+line, func() string {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), line) {
			return fmt.Sprintf("%q is not in %q (%v)", line, text, err)
		}
		return ""
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
