package etcdtest_test

import (
	"testing"

	"bijou/testscripts/fakes/etcdtest"
)

// BenchmarkStart measures the time until a cluster of one and of three answers.
func BenchmarkStart(b *testing.B) {
	for name, members := range map[string]int{"one": 1, "three": 3} {
		b.Run(name, func(b *testing.B) {
			etcdtest.Need(b)
			for b.Loop() {
				c, err := etcdtest.Start(etcdtest.Options{Members: members})
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Stop(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
