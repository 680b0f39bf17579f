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

// told is a gateway that answers each snapshot with the next revision in the channel.
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

// TestOlderAnswers checks that one answer at an older revision than a known one is asked for again. The
// store is gone forever once the second answer is older too.
func TestOlderAnswers(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	check(t, err)
	g, server := &told{revisions: make(chan int64, 10)}, grpc.NewServer()
	protocol.RegisterStoreServer(server, g)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	g.revisions <- 5
	s := openAt(t, socket)
	t.Cleanup(func() { s.Close() })

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
