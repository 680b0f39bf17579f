package remote_test

import (
	"database/sql"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"bijou/state/gateway"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/state/store/sqlite"
	"bijou/testscripts/conformance/storetest"
	"bijou/testscripts/kit/need"
)

// TestConformance runs the suite of stores over an operator's gateway in front of an SQLite file.
func TestConformance(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	var worlds sync.Map // from a socket to its world
	of := func(s store.Store) *world {
		w, _ := worlds.Load(remote.Socket(s))
		return w.(*world)
	}
	storetest.Run(t, storetest.Opener{
		Fresh: func(t testing.TB) store.Store {
			w := newWorld(t)
			worlds.Store(w.socket, w)
			return openAt(t, w.socket)
		},
		Share: func(t testing.TB, s store.Store) store.Store { return openAt(t, remote.Socket(s)) },
		Compact: func(t testing.TB, s store.Store, revision int64) {
			of(s).compact(t, revision)
			reconnect(t, s)
		},
		Expire: func(t testing.TB, s store.Store, id store.LeaseID) {
			check(t, of(s).base.(store.LeaseGranter).RevokeLease(t.Context(), id))
		},
		Kill: func(_ testing.TB, s store.Store) { remote.Kill(s) },
		Away: func(_ testing.TB, s store.Store) (back func()) {
			of(s).stall.Lock()
			return of(s).stall.Unlock
		},
	})
}

// world is a gateway in front of an SQLite file, with a socket that a test can block.
type world struct {
	file, behind, socket string
	stall                sync.RWMutex // held while the connection is blocked

	base     store.Store
	endpoint *gateway.Endpoint
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{file: filepath.Join(dir, "store"), behind: filepath.Join(dir, "behind"), socket: filepath.Join(dir, "socket")}
	check(t, sqlite.Create(t.Context(), w.file))
	w.begin(t)
	t.Cleanup(w.end)
	w.forward(t)
	return w
}

func (w *world) begin(t testing.TB) {
	t.Helper()
	var err error
	w.base, err = sqlite.Open(t.Context(), w.file)
	check(t, err)
	g, err := gateway.New(w.base, gateway.Unrestricted{})
	check(t, err)
	w.endpoint, err = g.Listen(gateway.Operator, w.behind)
	check(t, err)
}

func (w *world) end() {
	w.endpoint.Close()
	w.base.Close()
}

// forward forwards connections from the socket, unless it is blocked.
func (w *world) forward(t testing.TB) {
	l, err := net.Listen("unix", w.socket)
	check(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("unix", w.behind)
			if err != nil {
				from.Close()
				continue
			}
			running.Go(func() { w.pump(from, behind) })
			running.Go(func() { w.pump(behind, from) })
		}
	})
}

func (w *world) pump(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.stall.RLock()
		_, err = to.Write(buf[:n])
		w.stall.RUnlock()
		if err != nil {
			return
		}
	}
}

// compact trims the file's history while there is no gateway, because a gateway with watchers remembers
// what it has sent them.
func (w *world) compact(t testing.TB, revision int64) {
	w.end()
	db, err := sql.Open("sqlite", w.file)
	check(t, err)
	_, err = db.Exec("DELETE FROM log WHERE rev <= ?", revision)
	check(t, err)
	_, err = db.Exec("UPDATE head SET trimmed = ?", revision)
	check(t, err)
	check(t, db.Close())
	w.begin(t)
}

// reconnect waits until s has connected to the present gateway. Until then, a commit may fail with the old
// connection. Reads are repeated, so a read that succeeds has used a new connection.
func reconnect(t testing.TB, s store.Store) {
	t.Helper()
	snapshot, err := s.Snapshot(t.Context())
	check(t, err)
	defer snapshot.Close()
	_, err = snapshot.Revision(t.Context())
	check(t, err)
}

func openAt(t testing.TB, socket string) store.Store {
	t.Helper()
	s, err := remote.Open(t.Context(), "bijou+unix://"+socket)
	check(t, err)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
