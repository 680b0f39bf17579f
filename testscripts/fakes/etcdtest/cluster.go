package etcdtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Options are the options of a cluster. The zero value is one member that does not sync to disk.
type Options struct {
	Members int      // 1 or 3; default 1
	Sync    bool     // sync to disk, as in production; without it, data survives a kill but not a power cut
	Flags   []string // additional flags for each member
}

// Cluster is a running cluster.
type Cluster struct {
	Members []*Member

	dir    string
	keeper *keeper
	once   sync.Once
}

// Start starts a cluster and returns when each member answers. The caller stops it. Its processes die
// with the test's process at the latest.
func Start(o Options) (*Cluster, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	// The name is short, since the path of a socket is limited to 107 bytes.
	dir, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, keeper: newKeeper()}
	for i := range max(1, o.Members) {
		c.Members = append(c.Members, &Member{name: fmt.Sprintf("m%d", i), binary: binary, cluster: c})
	}
	for _, m := range c.Members {
		m.args = m.flags(o)
	}
	if err := c.start(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// For starts a cluster for one test. It skips the test if there is no server.
func For(t testing.TB, o Options) *Cluster {
	t.Helper()
	Need(t)
	c, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *Cluster) start() error {
	for _, m := range c.Members {
		if err := m.spawn(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		if err := m.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// Sockets returns the absolute paths of the members' client sockets.
func (c *Cluster) Sockets() []string {
	var sockets []string
	for _, m := range c.Members {
		sockets = append(sockets, m.Socket())
	}
	return sockets
}

// URL returns the state URL of a place in the cluster. The prefix begins with a slash.
func (c *Cluster) URL(prefix string) string {
	return "etcd+unix://" + strings.Join(c.Sockets(), ",") + "?prefix=" + prefix
}

// Stop kills the members and removes their data. It is idempotent.
func (c *Cluster) Stop() error {
	var err error
	c.once.Do(func() {
		for _, m := range c.Members {
			err = errors.Join(err, m.Kill())
		}
		c.keeper.end()
		err = errors.Join(err, os.RemoveAll(c.dir))
	})
	return err
}

// peers returns the list of members for etcd's flags.
func (c *Cluster) peers() string {
	var peers []string
	for _, m := range c.Members {
		peers = append(peers, m.name+"="+m.peerURL())
	}
	return strings.Join(peers, ",")
}

func (m *Member) path(name string) string { return filepath.Join(m.cluster.dir, name) }
