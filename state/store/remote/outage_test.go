package remote_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state/gateway"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/need"
)

// childRole is a variable that makes the test binary a gateway. Its last two arguments are the file
// behind the gateway and its socket.
const childRole = "BIJOU_REMOTE_TEST_GATEWAY"

// TestMain runs four times as many tests in parallel as there are CPUs, unless the command line sets a
// different number, because tests of leases spend most of their time waiting.
func TestMain(m *testing.M) {
	if os.Getenv(childRole) != "" {
		if err := serve(os.Args[len(os.Args)-2], os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// serve runs a gateway until its stdin ends.
func serve(file, socket string) error {
	s, err := sqlite.Open(context.Background(), file)
	if err != nil {
		return err
	}
	defer s.Close()
	g, err := gateway.New(s, gateway.Unrestricted{})
	if err != nil {
		return err
	}
	e, err := g.Listen(gateway.Operator, socket)
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

// process is a gateway in a separate process.
type process struct {
	testing.TB
	file, socket string
	cmd          *exec.Cmd
}

func (p *process) start() {
	p.Helper()
	p.cmd = exec.Command("/proc/self/exe", "-test.run=^$", p.file, p.socket)
	p.cmd.Env = append(os.Environ(), childRole+"=1")
	p.cmd.Stderr = os.Stderr
	_, err := p.cmd.StdinPipe()
	check(p, err)
	out, err := p.cmd.StdoutPipe()
	check(p, err)
	check(p, p.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		p.Fatalf("the gateway says %q, %v", line, err)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.Helper()
	check(p, p.cmd.Process.Signal(s))
}

// kill kills the process with SIGKILL, and waits for its end.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func newProcess(t testing.TB) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{TB: t, file: filepath.Join(dir, "store"), socket: filepath.Join(dir, "socket")}
	check(t, sqlite.Create(t.Context(), p.file))
	p.start()
	t.Cleanup(func() { p.kill() })
	return p
}

// waitFault waits while a fault lasts. Tests do not use it to wait for an event.
func waitFault(d time.Duration) { <-time.After(d) }

// TestOutages lets watchers follow writers while the gateway has a fault. No event may be lost, duplicated or
// out of order, and refreshed leases must survive.
func TestOutages(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	for _, c := range []struct {
		name   string
		strike func(p *process)
	}{
		{"killed and restarted", func(p *process) {
			for range 3 {
				p.kill()
				p.start()
				waitFault(time.Second)
			}
		}},
		{"killed, and back later", func(p *process) {
			p.kill()
			waitFault(4 * time.Second)
			p.start()
		}},
		{"hung for less than it takes to notice", func(p *process) {
			p.signal(syscall.SIGSTOP)
			waitFault(3 * time.Second)
			p.signal(syscall.SIGCONT)
		}},
		{"hung, killed and restarted", func(p *process) {
			p.signal(syscall.SIGSTOP)
			waitFault(time.Second)
			p.kill()
			p.start()
		}},
		{"hung until it is noticed", func(p *process) {
			p.signal(syscall.SIGSTOP)
			waitFault(25 * time.Second)
			p.signal(syscall.SIGCONT)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			s, other := openAt(t, p.socket), openAt(t, p.socket)
			defer s.Close()
			defer other.Close()

			l, err := s.Lease(t.Context(), time.Minute)
			check(t, err)
			_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "presence", Lease: l.ID()}}})
			check(t, err)
			checkWatchersDuring(t, p, []store.Store{s, other}, func() { c.strike(p) })
			select {
			case <-l.Done():
				t.Error("the lease is lost")
			default:
			}
			_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "presence", Lease: l.ID()}}})
			check(t, err)
		})
	}
}

// checkWatchersDuring writes before, during and after the strike, and compares the events that watchers get
// with the events of the file.
func checkWatchersDuring(t *testing.T, p *process, both []store.Store, strike func()) {
	const writers = 4
	direct, err := sqlite.Open(t.Context(), p.file)
	check(t, err)
	defer direct.Close()
	from := revisionOf(t, direct)

	told := make([][]store.Batch, 5)
	var watching, running sync.WaitGroup
	for i := range told {
		through := append(both, direct)[i%3]
		w, err := through.Watch(t.Context(), from, store.Below("w/"))
		check(t, err)
		defer w.Close()
		watching.Go(func() { told[i] = untilEnd(t, w) })
	}

	stop := make(chan struct{})
	counts := make([]int, writers)
	for i := range writers {
		running.Go(func() { counts[i] = writeUntil(t, both[i%2], fmt.Sprintf("w/%d", i), stop) })
	}
	waitFault(500 * time.Millisecond)
	strike()
	waitFault(500 * time.Millisecond)
	close(stop)
	running.Wait()

	_, err = both[0].Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "w/end"}}})
	check(t, err)
	watching.Wait()
	for i, count := range counts {
		if count == 0 {
			t.Errorf("writer %d has written nothing", i)
		}
	}
	truth := told[2]
	for i, got := range told {
		if diff := cmp.Diff(truth, got); diff != "" {
			t.Errorf("watcher %d (-the file's, +its)\n%s", i, diff)
		}
	}
}

func revisionOf(t testing.TB, s store.Store) int64 {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	check(t, err)
	defer snap.Close()
	revision, err := snap.Revision(t.Context())
	check(t, err)
	return revision
}

func untilEnd(t *testing.T, w store.Watcher) (all []store.Batch) {
	for {
		b, err := w.Next(t.Context())
		if err != nil {
			t.Error(err)
			return all
		}
		slices.SortFunc(b.Events, func(a, b store.Event) int { return strings.Compare(a.Key, b.Key) })
		all = append(all, b)
		if b.Events[0].Key == "w/end" {
			return all
		}
	}
}

// writeUntil repeatedly increments the key as its only writer, and returns the last number. After each commit
// with an unknown result it reads the key.
func writeUntil(t *testing.T, s store.Store, key string, stop chan struct{}) (count int) {
	for {
		select {
		case <-stop:
			return count
		default:
		}

		stored, revision, err := readCount(t.Context(), s, key)
		if err != nil {
			t.Error(err)
			return count
		}
		if stored != count && stored != count+1 {
			t.Errorf("%s is %d after %d was written", key, stored, count)
			return count
		}

		_, err = s.Commit(t.Context(), store.Txn{
			Conds: []store.Cond{{Key: key, Revision: revision}},
			Ops:   []store.Op{{Key: key, Value: []byte(strconv.Itoa(stored + 1))}},
		})
		count = stored
		switch {
		case err == nil:
			count++
		case errors.Is(err, store.ErrAway):
		case errors.Is(err, store.ErrConflict): // an earlier commit, with an unknown result, was carried out late
		default:
			t.Error(err)
			return count
		}
	}
}

func readCount(ctx context.Context, s store.Store, key string) (count int, revision int64, err error) {
	for {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return 0, 0, err
		}
		kv, ok, err := snap.Get(ctx, key)
		snap.Close()
		if err == nil && ok {
			count, err = strconv.Atoi(string(kv.Value))
		}
		if !errors.Is(err, store.ErrHistoryLost) {
			return count, kv.Revision, err
		}
	}
}

// TestAway checks a missing socket, a socket that no process serves, and a socket that accepts connections
// and never answers.
func TestAway(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	for name, prepare := range map[string]func(p *process){
		"no socket":       func(p *process) { p.kill(); check(p, os.Remove(p.socket)) },
		"a dead socket":   func(p *process) { p.kill() },
		"a silent socket": func(p *process) { p.signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			s := openAt(t, p.socket)
			defer s.Close()
			prepare(p)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := s.Commit(short, store.Txn{Ops: []store.Op{{Key: "a"}}})
			if !errors.Is(err, store.ErrAway) {
				t.Errorf("a commit: got %v, want that the store is away", err)
			}
			short, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := remote.Open(short, "bijou+unix://"+p.socket); !errors.Is(err, store.ErrAway) {
				t.Errorf("opening it: got %v, want that the store is away", err)
			}
		})
	}
}
