package etcd_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"bijou/state/store/etcd"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestSilentMember checks a store with one silent member, which accepts connections and calls and never
// answers, like a member that is cut off. Open and reads must ask a different member long before the timeout
// of the silent one. On a machine that is so busy that all members answer late, one call in ten may still
// reach the timeout.
func TestSilentMember(t *testing.T) {
	need.Whole(t)
	cluster := etcdtest.For(t, etcdtest.Options{Members: 3})
	url := clusters.newURL(cluster)
	check(t, etcd.Create(t.Context(), url))
	var asked, givenUp atomic.Int64
	silent := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		asked.Add(1)
		<-s.Context().Done()
		if errors.Is(s.Context().Err(), context.DeadlineExceeded) {
			givenUp.Add(1)
		}
		return s.Context().Err()
	}))
	socket := filepath.Join(t.TempDir(), "silent:1")
	l, err := net.Listen("unix", socket)
	check(t, err)
	go silent.Serve(l) // until Stop
	const reads = 20
	for i := range cluster.Sockets() {
		sockets := cluster.Sockets()
		members := strings.Join(sockets, ",")
		sockets[i] = socket
		s := openAt(t, strings.Replace(url, members, strings.Join(sockets, ","), 1))
		for range reads {
			list(t, s, "x")
		}
		check(t, s.Close())
	}
	silent.Stop()
	if asked.Load() == 0 || 10*givenUp.Load() > asked.Load() {
		t.Errorf("the silent member was asked %d times, and %d times waited for until time was up", asked.Load(), givenUp.Load())
	}
}
