package remote_test

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// told is a gateway that answers each request for a snapshot with the next revision in the channel.
type told struct {
	protocol.UnimplementedStoreServer
	revisions chan int64
}

func (g *told) Read(stream protocol.Store_ReadServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return stream.Send(&protocol.ReadResponse{Revision: <-g.revisions})
}

// Watch answers a request for a watch with the next revision in the channel, and then sends no changes.
func (g *told) Watch(_ *protocol.WatchRequest, stream protocol.Store_WatchServer) error {
	if err := stream.Send(&protocol.WatchResponse{Revision: <-g.revisions}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// serveTold serves the answers over a socket until the test ends, and opens a store at the socket.
func serveTold(t *testing.T, g *told) store.Store {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	check(t, err)

	server := grpc.NewServer()
	protocol.RegisterStoreServer(server, g)
	go server.Serve(l)
	t.Cleanup(server.Stop)

	s := openAt(t, socket)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestOlderThanWatch checks that a watch asks again if the gateway serves a revision that is older than the
// start of the watch. The store counts as gone once the second answer is older too. The handle's reads have
// seen only revision 1, as if Watch was the first call.
func TestOlderThanWatch(t *testing.T) {
	t.Parallel()
	g := &told{revisions: make(chan int64, 10)}
	g.revisions <- 1
	s := serveTold(t, g)

	g.revisions <- 3
	g.revisions <- 3
	w, err := s.Watch(t.Context(), 5, store.Below("a/"))
	check(t, err)
	defer w.Close()
	if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrStoreGone) {
		t.Errorf("the watch of an older copy returned %v, want that the store is gone", err)
	}
}

// TestOlderAnswers checks that a request is repeated if its answer has an older revision than the client
// knows. The store counts as gone forever once the second answer is older too.
func TestOlderAnswers(t *testing.T) {
	t.Parallel()
	g := &told{revisions: make(chan int64, 10)}
	g.revisions <- 5
	s := serveTold(t, g)

	revision := func(answers ...int64) (int64, error) {
		for _, r := range answers {
			g.revisions <- r
		}
		snap, err := s.Snapshot(t.Context())
		if err != nil {
			return 0, err
		}
		defer snap.Close()
		return snap.Revision(t.Context())
	}

	if got, err := revision(3, 6); got != 6 || err != nil {
		t.Errorf("after one older answer: revision %d, error %v; want 6", got, err)
	}
	if _, err := revision(4, 4); !errors.Is(err, store.ErrStoreGone) {
		t.Errorf("after two older answers: error %v, want that the store is gone", err)
	}
	if _, err := revision(); !errors.Is(err, store.ErrStoreGone) {
		t.Errorf("afterwards: error %v, want that the store is gone", err)
	}
}
