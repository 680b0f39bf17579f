package unitdir

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"bijou/state/osutil"
)

// TestTryQuiesce checks a directory in every state in which an agent may leave it.
func TestTryQuiesce(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(t *testing.T, f Folder)
		want error
	}{
		{"no folder", func(*testing.T, Folder) {}, nil},
		{"no agent has ever run", func(t *testing.T, f Folder) { makeFolder(t, f) }, nil},
		{"an agent has ended", func(t *testing.T, f Folder) { startAgent(t, f)() }, nil},
		{"no hook runs", func(t *testing.T, f Folder) { startAgent(t, f) }, nil},
		{"somebody else quiesces it", func(t *testing.T, f Folder) {
			startAgent(t, f)
			quiesce(t, f)
		}, nil},
		{"somebody else quiesces it, without an agent", func(t *testing.T, f Folder) {
			startAgent(t, f)()
			quiesce(t, f)
		}, nil},
		{"a hook runs", func(t *testing.T, f Folder) {
			startAgent(t, f)()
			hold(t, f.hookLockPath())
		}, ErrHookRuns},
		{"an agent of an older binary", func(t *testing.T, f Folder) {
			makeFolder(t, f)
			hold(t, f.Path("lock"))
		}, ErrAgentUnaware},
		{"an agent of an older binary after one of this", func(t *testing.T, f Folder) {
			startAgent(t, f)()
			hold(t, f.Path("lock"))
		}, ErrAgentUnaware},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := Folder(filepath.Join(t.TempDir(), "agents", "unit-app-0"))
			test.set(t, f)
			q, err := f.TryQuiesce()
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if err == nil && !q.Holds() {
				t.Error("it does not hold")
			}
		})
	}
}

// TestHookLock checks that a hook can begin once nothing prevents it, no matter how often it has tried
// before.
func TestHookLock(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "agents", "unit-app-0"))
	makeFolder(t, f)
	lock, err := f.OpenHookLock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	first, second := quiesce(t, f), quiesce(t, f)
	for _, q := range []*Quiesced{first, second} {
		for range 2 {
			if may, err := lock.TryBegin(); may || err != nil {
				t.Fatalf("while it is quiesced: %v, error %v", may, err)
			}
		}
		q.Close()
	}
	if may, err := lock.TryBegin(); !may || err != nil {
		t.Fatalf("afterwards: %v, error %v", may, err)
	}
	if _, err := f.TryQuiesce(); !errors.Is(err, ErrHookRuns) {
		t.Errorf("while a hook runs: error %v", err)
	}
	if err := lock.End(); err != nil {
		t.Fatal(err)
	}
	quiesce(t, f)
}

// TestQuiescedStart checks that a later start of an agent is noticed even if there was no file to lock.
func TestQuiescedStart(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "agents", "unit-app-0"))
	q := quiesce(t, f)
	startAgent(t, f)
	if q.Holds() {
		t.Error("it holds, although an agent runs the unit")
	}
}

// TestQuiesceTwice checks that hooks stay quiesced until the last of two processes ends, also those of an
// agent with an older binary, which does not use the hook lock.
func TestQuiesceTwice(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "agents", "unit-app-0"))
	startAgent(t, f)()
	first, second := quiesce(t, f), quiesce(t, f)
	for _, q := range []*Quiesced{first, second} {
		lock, err := f.tryLock()
		if !errors.Is(err, osutil.ErrLocked) {
			t.Fatalf("an agent can start while the unit is quiesced: lock %v, error %v", lock, err)
		}
		q.Close()
	}
	startAgent(t, f)
}

// TestQuiesceTogether checks that processes that quiesce the unit at the same time do not take one another for
// a hook, or for an agent that uses the hook lock.
func TestQuiesceTogether(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(t *testing.T, f Folder)
		want error
	}{
		{"no agent", func(*testing.T, Folder) {}, nil},
		{"an agent of an older binary", func(t *testing.T, f Folder) { hold(t, f.Path("lock")) }, ErrAgentUnaware},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := Folder(filepath.Join(t.TempDir(), "agents", "unit-app-0"))
			startAgent(t, f)()
			test.set(t, f)

			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 200 {
						q, err := f.TryQuiesce()
						if !errors.Is(err, test.want) {
							t.Errorf("error %v, want %v", err, test.want)
							return
						}
						if err == nil {
							q.Close()
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func makeFolder(t *testing.T, f Folder) {
	t.Helper()
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		t.Fatal(err)
	}
}

func hold(t *testing.T, path string) {
	t.Helper()
	file, err := osutil.TryLockFile(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
}

// startAgent holds the locks of an agent until the test ends or stop is called.
func startAgent(t *testing.T, f Folder) (stop func()) {
	t.Helper()
	main, err := f.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := f.OpenHookLock()
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = hooks.Close()
		_ = main.Close()
	}
	t.Cleanup(stop)
	return stop
}

func quiesce(t *testing.T, f Folder) *Quiesced {
	t.Helper()
	q, err := f.TryQuiesce()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}
