package etcdtest_test

import (
	"testing"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

func TestCluster(t *testing.T) {
	need.Whole(t)
	for _, members := range []int{1, 3} {
		c := etcdtest.For(t, etcdtest.Options{Members: members})
		for _, m := range c.Members {
			for _, step := range []func() error{m.Pause, m.Resume, m.Kill, m.Kill, m.Start} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestMaintenance(t *testing.T) {
	need.Whole(t)
	c := etcdtest.For(t, etcdtest.Options{Members: 3})
	for range 2 {
		if _, err := c.Members[0].Compact(); err != nil {
			t.Error(err)
		}
	}
	for _, m := range c.Members {
		if err := m.Defragment(); err != nil {
			t.Error(err)
		}
	}
}
