package etcd_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/conformance/storetest"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// clusterPool contains the clusters that tests use one after the other. Two tests never use the same cluster
// at the same time, because revisions and compactions affect all its users. The pool has as many clusters as
// there are parallel tests.
type clusterPool struct {
	mu      sync.Mutex
	idle    map[int][]*etcdtest.Cluster // by their number of members
	all     []*etcdtest.Cluster
	numURLs atomic.Int64
}

var clusters = &clusterPool{idle: map[int][]*etcdtest.Cluster{}}

// TestMain runs twice as many tests in parallel as there are CPUs, unless the command line sets a different
// number, because the tests mostly wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, c := range clusters.all {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// borrow lends a cluster to a test that does not damage it.
func (p *clusterPool) borrow(t testing.TB, members int) *etcdtest.Cluster {
	t.Helper()
	etcdtest.Need(t)
	c := p.popIdle(members)
	if c == nil {
		var err error
		c, err = etcdtest.Start(etcdtest.Options{Members: members})
		check(t, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, c)
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle[members] = append(p.idle[members], c)
	})
	return c
}

func (p *clusterPool) popIdle(members int) *etcdtest.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[members]
	if len(idle) == 0 {
		return nil
	}
	p.idle[members] = idle[1:]
	return idle[0]
}

// newURL returns a new place in a cluster.
func (p *clusterPool) newURL(c *etcdtest.Cluster) string {
	return c.URL(fmt.Sprintf("/test/%d", p.numURLs.Add(1)))
}

func TestConformance(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	for name, members := range map[string]int{"one": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			etcdtest.Need(t)
			t.Parallel()
			storetest.Run(t, storeOpener(members))
		})
	}
}

func storeOpener(members int) storetest.Opener {
	var used sync.Map // from a store to its cluster
	return storetest.Opener{
		Fresh: func(t testing.TB) store.Store {
			c := clusters.borrow(t, members)
			s := newStore(t, c)
			used.Store(s, c)
			return s
		},
		Share: func(t testing.TB, s store.Store) store.Store { return openAt(t, etcd.URL(s)) },
		Compact: func(t testing.TB, s store.Store, revision int64) {
			_, err := etcd.Client(s).Compact(t.Context(), revision)
			check(t, err)
		},
		Expire: func(t testing.TB, s store.Store, id store.LeaseID) {
			_, err := etcd.Client(s).Revoke(t.Context(), clientv3.LeaseID(id))
			check(t, err)
		},
		Kill: func(_ testing.TB, s store.Store) { etcd.Kill(s) },
		Away: func(t testing.TB, s store.Store) (back func()) {
			c, _ := used.Load(s)
			members := c.(*etcdtest.Cluster).Members
			for _, m := range members {
				check(t, m.Pause())
			}
			return func() {
				for _, m := range members {
					check(t, m.Resume())
				}
			}
		},
	}
}

func newStore(t testing.TB, c *etcdtest.Cluster) store.Store {
	t.Helper()
	url := clusters.newURL(c)
	check(t, etcd.Create(t.Context(), url))
	return openAt(t, url)
}

func openAt(t testing.TB, url string) store.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), url)
	check(t, err)
	t.Cleanup(func() {
		if n := etcd.Epoch(s); n > 0 && !mayRestore(t) {
			t.Errorf("%d times history went back, which it never did", n)
		}
	})
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
