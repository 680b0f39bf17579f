package copies

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// TestCopiedFolder repeatedly starts an agent from a copy of an environment's directory. The copy refers to
// the same state file.
func TestCopiedFolder(t *testing.T) {
	need.Whole(t)
	w := newFolder(t)
	w.order(3, 8)
	w.withCopy("a copy on the same host, over a file", func() { w.awaitHooks(8) })
}

// TestCopiedFolderLocked does the same while a separate program locks the file, and a hook runs longer
// than that.
func TestCopiedFolderLocked(t *testing.T) {
	need.Long(t)
	w := newFolder(t)
	w.order(20, 50)
	w.withCopy("a copy on the same host, over a file that is locked", func() {
		w.outlive(func() (back func()) { return localenv.Lock(t, w.StateFile()) })
	})
}

// TestCopiedFolderByGateway does this with agents that reach the state through a gateway. During a hook the
// gateway hangs, and then it is killed.
func TestCopiedFolderByGateway(t *testing.T) {
	need.Long(t)
	w := newFolderByGateway(t)
	w.order(20, 50)
	w.withCopy("a copy on the same host, over a gateway", func() {
		w.outlive(func() (back func()) {
			w.gateway.Hang()
			return func() {
				w.gateway.Kill()
				w.gateway.Start()
			}
		})
	})
	for _, refusal := range w.gateway.Refused() {
		t.Errorf("an agent was refused: %s", refusal)
	}
}

// outlive makes the store unavailable in the middle of a hook, for longer than a session lasts without it.
// Then it calls back.
func (w *folder) outlive(away func() (back func())) {
	w.t.Helper()
	w.awaitHooks(3)
	w.order(600, 600)
	hook := w.awaitLong()
	w.order(20, 50)
	back := away()
	time.Sleep(outage)
	back()
	w.awaitHooks(3)
	checkOutlived(w.t, hook, w.events())
}

// outage is the time for which a store is away. It is four times as long as a session lasts without the
// store.
const outage = 40 * time.Second

// While f runs, withCopy constantly changes settings, and starts an agent from a copy again and again. At the
// end it checks that every hook ran in one place only.
func (w *folder) withCopy(name string, f func()) {
	w.t.Helper()
	defer func() { checkRuns(w.t, name, w.events()) }() // checks this even if the units never settle
	halt := w.drive()
	copied := filepath.Join(w.dir, "copy")
	if out, err := exec.Command("cp", "-a", w.Dir(), copied).CombinedOutput(); err != nil {
		w.t.Fatalf("cannot copy: %v\n%s", err, out)
	}
	stop, refused := w.insist(copied)
	f()
	w.eventually("the copy's agent was refused, or not", func() string {
		runs := strings.Contains(fmt.Sprint(judge.Spans(w.events())), copied)
		return await.Unless(refused() > 0 || runs, "it has not come so far")
	})
	stop()
	halt()
	w.eventually("the unit has come to rest", w.missing)
	fmt.Printf("copies: %s: the copy's agent was refused %d times\n", name, refused())
	checkOrder(w.t, w.events())
}

// drive changes the unit's settings until halt is called.
func (w *folder) drive() (halt func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_ = w.Command("set", "app", fmt.Sprintf("set=turn=%d", n)).Run() // the command may fail while the store is away
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	halt = func() { cancel(); running.Wait() }
	w.t.Cleanup(halt)
	return halt
}

// insist starts the agent of a directory again and again until stop is called. refused returns the number of
// times that the agent was refused.
func (w *folder) insist(dir string) (stop func(), refused func() int64) {
	w.t.Helper()
	e, err := home.Load(dir)
	check(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var count atomic.Int64
	running.Go(func() {
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, filepath.Join(e.ToolsDir(), "machine-agent"), "--machine", "0", "--env", dir)
			cmd.Env = w.Vars
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.WaitDelay = 30 * time.Second
			if out, err := cmd.CombinedOutput(); err != nil && bytes.Contains(out, []byte("the claim is held by process")) {
				count.Add(1)
			}
			time.Sleep(300 * time.Millisecond) // as a service manager would
		}
	})
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return stop, count.Load
}
