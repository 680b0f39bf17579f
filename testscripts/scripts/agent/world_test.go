package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/script"
)

// world is one BIJOU_HOME with the applets of this test binary.
type world struct {
	*localenv.Env
	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{localenv.New(t, t.TempDir()), t}
	t.Cleanup(func() {
		script.StopLeftovers(w.Home)
		w.Destroy(w.Log)
	})
	return w
}

func (w *world) file(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// record reads the log of a unit's recorder. It skips a torn last line.
func (w *world) record(unit string) []judge.Event {
	w.t.Helper()
	events, _ := judge.Read(w.Machine("units", unit, "recorder.log"))
	return events
}

// eventually waits for a condition. Its limit is far longer than the condition should take.
func (w *world) eventually(what string, true func() bool) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: time.Minute, Pause: 50 * time.Millisecond, Report: func() string {
		return w.Status() + "\nagent.log ends:\n" + localenv.Tail(w.Log(), 4000)
	}}, what, true)
}
