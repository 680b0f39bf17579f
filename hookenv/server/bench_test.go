package server_test

import (
	"bytes"
	"testing"

	"bijou/hookenv/hookapi"
)

// BenchmarkRelationGet measures one call from a hook, including its process.
func BenchmarkRelationGet(b *testing.B) {
	_, r := inHook(b, hookapi.Modern)
	h := serveHook(b, r, b.TempDir())
	for b.Loop() {
		if got := h.call(b, nil, "relation-get", "user"); got.Stdout != "root\n" {
			b.Fatalf("got %+v", got)
		}
	}
}

// BenchmarkTrue measures the smallest possible cost of a process, for comparison.
func BenchmarkTrue(b *testing.B) {
	h := hook{directory: b.TempDir()}
	for b.Loop() {
		cmd := h.command(b, nil, "true")
		cmd.Path = "/bin/true"
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
