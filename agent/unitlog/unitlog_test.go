package unitlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/logs"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

func open(t *testing.T, st *state.State) *Log {
	s := NewSender(st, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	return s.Open("app/0", filepath.Join(t.TempDir(), "hooks.log"))
}

// awaitStored waits for lines in the store. Close stops waiting after a while, but the sender still sends the lines.
func awaitStored(t *testing.T, st *state.State, ok func(lines []logs.Line) bool) {
	t.Helper()
	statetest.Eventually(t, st, func(v *state.View) (bool, error) {
		lines, err := logs.Read(v, logs.Filter{})
		return ok(lines), err
	})
}

func stored(t *testing.T, st *state.State) []logs.Line {
	return statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
}

func TestLinesReachFileAndStore(t *testing.T) {
	st := statetest.New(t)
	l := open(t, st)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for n := range 100 {
				l.Write("INFO", "install", fmt.Sprintf("line %d of %d", n, i))
			}
		})
	}
	wg.Wait()
	l.Close()
	l.Close()
	l.Write("INFO", "install", "after the end")
	awaitStored(t, st, func(lines []logs.Line) bool { return len(lines) >= 1000 })
	if got := len(stored(t, st)); got != 1000 {
		t.Errorf("%d lines in the store, want 1000", got)
	}
	data, err := os.ReadFile(l.file.path)
	if err != nil || strings.Count(string(data), "\n") != 1000 {
		t.Errorf("%d lines in the file, want 1000; %v", strings.Count(string(data), "\n"), err)
	}
	if !strings.Contains(string(data), " INFO install: line 7 of 3\n") {
		t.Errorf("the file begins with %.100q", data)
	}
}

func TestTooManyLinesAreInTheFileOnlyAndCounted(t *testing.T) {
	st := statetest.New(t)
	l := open(t, st)
	for range 60 {
		l.Write("INFO", "install", strings.Repeat("x", 60<<10))
	}
	l.Close()
	data, err := os.ReadFile(l.file.path)
	if err != nil || len(data) < 60*60<<10 {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	awaitStored(t, st, func(lines []logs.Line) bool {
		// Lines that were logged after the overflow follow the line about dropped lines.
		said := slices.ContainsFunc(lines, func(l logs.Line) bool { return strings.Contains(l.Message, "lines are missing here") })
		return len(lines) >= 60 || said
	})
}

func TestFileIsRotatedBetweenHooks(t *testing.T) {
	l := open(t, statetest.New(t))
	for range 25 {
		for range 20 {
			l.Write("INFO", "install", strings.Repeat("x", 50<<10))
		}
		l.Flush()
	}
	l.Close()
	for _, path := range []string{l.file.path, l.file.path + ".1"} {
		if info, err := os.Stat(path); err != nil || info.Size() > maxSizeBetweenHooks+2<<20 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestOneHooksTextStaysTogether(t *testing.T) {
	l := open(t, statetest.New(t))
	for range 400 {
		l.Write("INFO", "install", strings.Repeat("x", 50<<10))
	}
	l.Flush()
	l.Close()
	if info, err := os.Stat(l.file.path); err != nil || info.Size() < 400*50<<10 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(l.file.path + ".1"); !os.IsNotExist(err) {
		t.Errorf("it was rotated: %v", err)
	}
}

func TestEndlessHookDoesNotFillTheDisk(t *testing.T) {
	f := logFile{path: filepath.Join(t.TempDir(), "hooks.log")}
	line := logs.Line{Level: "INFO", Message: strings.Repeat("x", 1<<20)}
	for range 3 {
		if err := f.write(line); err != nil {
			t.Fatal(err)
		}
		f.size += maxSizeWithinHook / 2 // as if this had been written
	}
	f.close()
	if info, err := os.Stat(f.path + ".1"); err != nil || info.Size() == 0 {
		t.Errorf("it was not rotated: %v, %v", info, err)
	}
}

func TestFloodOfEmptyLinesIsBounded(t *testing.T) {
	st := statetest.New(t)
	l := open(t, st)
	for range 50_000 {
		l.Write("INFO", "install", "")
		l.mu.Lock()
		kept := len(l.pending)
		l.mu.Unlock()
		if kept > maxPending/lineOverhead+1 {
			t.Fatalf("%d empty lines are kept", kept)
		}
	}
	l.Close()
	awaitStored(t, st, func(lines []logs.Line) bool { return len(lines) > 0 })
}

func TestFloodOfLongLinesReachesTheStoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := statetest.New(t)
		l := open(t, st)
		begin := time.Now()
		for time.Since(begin) < 5*time.Second {
			for range 40 {
				l.Write("INFO", "install", strings.Repeat("x", 60<<10))
			}
			time.Sleep(100 * time.Millisecond)
		}
		ends := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{Last: 1}) })
		if sent := ends[0].Seq * 60 << 10; sent > 7*maxRate || sent < 3*maxRate {
			t.Errorf("%d bytes were sent in 5 seconds", sent)
		}
		l.Close()
	})
}

// TestNoMessageForgesARecord checks the unit's log file. Each line of a message there begins with the
// message's own time, level and hook, and shows no secret. The store keeps the message as it was.
func TestNoMessageForgesARecord(t *testing.T) {
	st := statetest.New(t)
	l := open(t, st)
	said := "a\r\n2026-01-01T00:00:00.000Z INFO start: forged \u202egnp.\x1b[2J\r password=s3cr3t\n"
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	l.WriteAt(at, "ERROR", "install", said)
	l.Close()

	data, err := os.ReadFile(l.file.path)
	want := "2026-05-01T00:00:00.000Z ERROR install: a\n" +
		`2026-05-01T00:00:00.000Z ERROR install: 2026-01-01T00:00:00.000Z INFO start: forged \u202egnp.\x1b[2J\r password=(hidden)` + "\n"
	if diff := cmp.Diff(want, string(data)); err != nil || diff != "" {
		t.Errorf("%s%v", diff, err)
	}

	awaitStored(t, st, func(lines []logs.Line) bool { return len(lines) > 0 })
	if lines := stored(t, st); len(lines) != 1 || lines[0].Message != said {
		t.Errorf("%v", lines)
	}
}

// TestPrivateKeyInLinesIsHidden checks that no line of a private key reaches the store, although no
// single line shows that it belongs to a key.
func TestPrivateKeyInLinesIsHidden(t *testing.T) {
	st := statetest.New(t)
	l := open(t, st)
	for _, line := range []string{"-----BEGIN PRIVATE KEY-----", "MIIEpA", "-----END PRIVATE KEY-----", "word", "-----BEGIN PRIVATE KEY-----"} {
		l.Write("INFO", "install", line)
	}
	l.Flush()
	l.Write("INFO", "start", "word")
	l.Close()

	want := []string{"-----BEGIN PRIVATE KEY-----", "(hidden)", "-----END PRIVATE KEY-----", "word", "-----BEGIN PRIVATE KEY-----", "word"}
	awaitStored(t, st, func(lines []logs.Line) bool { return len(lines) >= len(want) })
	var got []string
	for _, line := range stored(t, st) {
		got = append(got, line.Message)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if data, err := os.ReadFile(l.file.path); err != nil || strings.Contains(string(data), "MIIEpA") {
		t.Errorf("the file has it: %v", err)
	}
}

// TestLogsOfManyUnitsShareCommits checks that lines of many units share as few transactions as possible, and
// that a line that cannot be sent does not delay the other lines.
func TestLogsOfManyUnitsShareCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := statetest.New(t)
		s := NewSender(st, slog.New(slog.DiscardHandler))
		defer s.Close()
		revision := func() int64 { return statetest.Read(t, st, (*state.View).Revision) }
		before := revision()
		const units = 2*logs.MaxPerUpdate + 1
		var all []*Log
		var names []string
		for n := range units {
			l := s.Open(fmt.Sprint("app/", n), "")
			if n != 5 {
				names = append(names, l.Unit)
			}
			l.Note("INFO", "install", "done")
			l.Flush()
			all = append(all, l)
		}
		time.Sleep(time.Second)
		if n := len(stored(t, st)); n != units || revision() != before+3 {
			t.Errorf("%d lines in %d commits", n, revision()-before)
		}
		broken := store.Op{Key: keys.LogHead("app/5"), Value: []byte("nothing that can be read")}
		if _, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{broken}}); err != nil {
			t.Fatal(err)
		}
		for _, l := range all[:logs.MaxPerUpdate] {
			l.Note("INFO", "start", "done")
		}
		time.Sleep(time.Minute)
		others := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{Sources: names}) })
		if len(others) != units-1+logs.MaxPerUpdate-1 {
			t.Errorf("%d lines beside a log that cannot be written", len(others))
		}
		for _, l := range all {
			go l.Close()
		}
		time.Sleep(3 * time.Second)
	})
}

// denying is a store that refuses commits to one unit's log.
type denying struct {
	store.Store
	unit string

	mu      sync.Mutex
	refused int
}

func (d *denying) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	for _, o := range txn.Ops {
		if strings.HasPrefix(o.Key, keys.LogHead(d.unit)) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.refused++
			return 0, fmt.Errorf("%w: it is another machine's", store.ErrDenied)
		}
	}
	return d.Store.Commit(ctx, txn)
}

// TestRefusedLinesAreDropped checks that the sender discards a unit's lines if the store refuses them, since
// the machine no longer has the unit. They must not delay the lines of other units.
func TestRefusedLinesAreDropped(t *testing.T) {
	d := &denying{Store: statetest.New(t).Store(), unit: "lost/0"}
	st := state.OpenIn(d)
	s := NewSender(st, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	lost, kept := s.Open("lost/0", ""), s.Open("kept/0", "")
	lost.Write("INFO", "stop", "the last words")
	kept.Write("INFO", "start", "the first")
	lost.Close()
	kept.Close()

	select {
	case <-lost.sent:
	default:
		t.Error("the refused lines still wait to be sent")
	}
	awaitStored(t, st, func(lines []logs.Line) bool { return len(lines) == 1 && lines[0].Source == "kept/0" })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused < 1 || d.refused > 2 { // once together with other lines, and once by themselves
		t.Errorf("they were sent %d times", d.refused)
	}
}

// TestNoLineIsSentTwice checks a store that fails between two transactions of one log. The lines of the first
// transaction must not be sent again.
func TestNoLineIsSentTwice(t *testing.T) {
	for _, units := range []int{1, 2} {
		t.Run(fmt.Sprint(units, " units"), func(t *testing.T) {
			f := &failingOnce{Store: statetest.New(t).Store(), at: 2}
			st := state.OpenIn(f)
			s := NewSender(st, slog.New(slog.DiscardHandler))
			t.Cleanup(s.Close)

			// Three lines of which no two fit in one batch.
			var open []*Log
			for n := range units {
				l := s.Open(fmt.Sprint("a/", n), "")
				for i := range 3 {
					l.Note("INFO", "install", fmt.Sprint(i, strings.Repeat("x", 40<<10)))
				}
				open = append(open, l)
			}
			for _, l := range open {
				l.Close()
			}

			awaitStored(t, st, func(lines []logs.Line) bool { return len(lines) >= 3*units })
			for n := range units {
				filter := logs.Filter{Sources: []string{fmt.Sprint("a/", n)}}
				lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, filter) })
				var first []string
				for _, l := range lines {
					first = append(first, l.Message[:1])
				}
				if got := strings.Join(first, ""); got != "012" {
					t.Errorf("%s has the lines %s, want 012", filter.Sources, got)
				}
			}
		})
	}
}

// failingOnce is a store of which one commit to logs fails.
type failingOnce struct {
	store.Store
	at int // which commit fails, from 1

	mu      sync.Mutex
	commits int
}

func (f *failingOnce) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	f.mu.Lock()
	f.commits++
	fails := f.commits == f.at
	f.mu.Unlock()
	if fails {
		return 0, errors.New("the store is away for a moment")
	}
	return f.Store.Commit(ctx, txn)
}
