package outage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/state"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// world is one BIJOU_HOME with the applets of this test binary, and one environment in it.
type world struct {
	*localenv.Env
	t    *testing.T
	gone string // the records of units that were removed
	url  string // the state's

	charm   string
	gateway *confined.Gateway // the gateway through which agents reach the state; if nil, they open the state themselves

	// recorded is the directory with the units' records, each in a subdirectory with the unit's name.
	// If empty, they are in the units' own directories.
	recorded string

	commands commands // the running commands
}

// newWorld bootstraps an environment whose state is at the URL. "" is the default, a SQLite file.
func newWorld(t *testing.T, url string) *world {
	t.Helper()
	w := prepareWorld(t, t.TempDir(), url)
	w.bootstrap()
	return w
}

// prepareWorld creates a world, not yet bootstrapped, whose BIJOU_HOME is home.
func prepareWorld(t *testing.T, home, url string) *world {
	t.Helper()
	w := &world{Env: localenv.New(t, home, "BIJOU_DEBUG=uniter", "BIJOU_STATE="+url), t: t, gone: t.TempDir(), url: url}
	w.Run = w.commands.run
	w.charm = filepath.Join(t.TempDir(), "recorder")
	check(t, judge.Charm(w.charm, filepath.Join("..", "..", "charms", "recorder"), w.gone))
	return w
}

func (w *world) bootstrap() {
	w.t.Helper()
	w.t.Cleanup(func() { w.Destroy(func() string { return w.log(0) }) })
	w.Juju("bootstrap", "--config", "update-status-interval=0")
	w.url = w.recordedURL()
}

// recorderLogs returns a pattern that matches the units' records.
func (w *world) recorderLogs() string {
	if w.recorded != "" {
		return filepath.Join(w.recorded, "*", "recorder.log")
	}
	return w.Unit("*", "recorder.log")
}

// recordedURL returns the URL of the state that bootstrap has recorded.
func (w *world) recordedURL() string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.Dir(), "environment.yaml"))
	check(w.t, err)
	var record struct{ State string }
	check(w.t, yaml.Unmarshal(data, &record))
	if path, file := strings.CutPrefix(record.State, "sqlite:"); file && !filepath.IsAbs(path) {
		return "sqlite:" + filepath.Join(w.Dir(), path)
	}
	return record.State
}

// StateFile returns the file of a SQLite state.
func (w *world) StateFile() string { return strings.TrimPrefix(w.url, "sqlite:") }

// answer is the result of a command.
type answer struct {
	args   []string
	code   int
	out    string
	err    string
	lasted time.Duration
}

func (a answer) String() string {
	return fmt.Sprintf("juju %s: exit %d after %v\n%s%s", strings.Join(a.args, " "), a.code, a.lasted.Round(time.Millisecond), a.out, a.err)
}

// ask runs a command, which may fail.
func (w *world) ask(args ...string) answer {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := w.Command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := w.Run(cmd); err != nil && cmd.ProcessState == nil {
		w.t.Error(err)
		return answer{args: args, code: -1}
	}
	return answer{args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
}

// log returns the background process's log from an offset on, without the lines for developers.
func (w *world) log(from int) string {
	w.t.Helper()
	var said strings.Builder
	for line := range strings.Lines(w.fullLog(from)) {
		if !strings.Contains(line, " level=DEBUG ") {
			said.WriteString(line)
		}
	}
	return said.String()
}

func (w *world) fullLog(from int) string {
	w.t.Helper()
	data, err := os.ReadFile(w.Machine("agent.log"))
	check(w.t, err)
	return string(data[min(from, len(data)):])
}

// mark returns the current end of the log.
func (w *world) mark() int {
	w.t.Helper()
	return len(w.fullLog(0))
}

// view reads the state.
func (w *world) view(f func(v *state.View) error) error {
	s, err := state.Open(w.t.Context(), w.url)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.View(w.t.Context(), f)
}

// eventually waits until the function not returns "". Until then, the function returns the reason to wait longer. The
// limit is far longer than the wait needs.
func (w *world) eventually(what string, limit time.Duration, not func() string) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: limit, Pause: 100 * time.Millisecond, Report: func() string { return w.ask("status").String() }}, what, not)
}

// rest sleeps while the workload continues. Tests do not use it to wait for an event.
func rest(d time.Duration) { <-time.After(d) }
