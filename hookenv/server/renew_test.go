package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"bijou/hookenv/hookapi"
	"bijou/hookenv/server"
)

// TestRenew checks that the server recreates a removed or replaced socket, and that it then serves the hooks
// that were registered before.
func TestRenew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sockets", "app-0")
	s, err := server.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_, r := inHook(t, hookapi.Modern)
	id := register(s, r)
	works := func(what string) {
		t.Helper()
		if err := s.Renew(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := connect(t, path).call("get", "client_id", id, "unit_name", "mysql/0", "setting_name", "user"); got["value"] != "root" {
			t.Errorf("%s: got %v", what, got)
		}
	}
	works("as it was made")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	works("removed")
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	works("removed with its folder")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	leaveSocket(t, path)
	works("replaced by a dead one")

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(); err == nil {
		t.Error("a file was replaced")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("what is not ours was removed: %v", err)
	}
}
