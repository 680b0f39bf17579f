package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/hookenv/hookapi"
	"bijou/hookenv/server"
)

func TestListenModes(t *testing.T) {
	path := filepath.Join(filepath.Dir(socketPath(t)), "new", "s")
	s, err := server.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		t.Run(name, func(t *testing.T) {
			info, err := os.Stat(name)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("mode %v (%v), want %v", info.Mode().Perm(), err, want)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there after Close: %v", err)
	}
}

func TestListenRefusals(t *testing.T) {
	folder := filepath.Dir(socketPath(t))
	open := filepath.Join(folder, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, strings.Repeat("x", 108)): "the limit for a unix socket is 107",
		filepath.Join(open, "s"):                        "must have 0700",
		file:                                            "not a socket",
		start(t).Path():                                 "another process serves it",
	} {
		t.Run(path, func(t *testing.T) {
			if _, err := server.Listen(path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Listen(%q): got %v, want an error with %q", path, err, want)
			}
		})
	}
}

func TestListenReplacesStaleSocket(t *testing.T) {
	path := socketPath(t)
	leaveSocket(t, path)
	s, err := server.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClientIDs(t *testing.T) {
	s := start(t)
	seen := map[string]bool{}
	for range 10 {
		id := register(s, nil)
		if len(id) != 32 || seen[id] {
			t.Errorf("client id %q is no 128 bits, or not new", id)
		}
		seen[id] = true
	}
	s.Unregister("never registered")
}

// register registers a hook, and returns its client id.
func register(s *server.Server, h hookapi.Hook) string {
	id := server.NewClientID()
	s.Register(id, h)
	return id
}
