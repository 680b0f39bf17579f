package server_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/hookapi"
	"bijou/testscripts/conformance/recorded"
)

// modernHook returns a running hook, and a connection for tools to it.
func modernHook(t *testing.T) (hook, hookapi.Hook) {
	_, r := inHook(t, hookapi.Modern)
	return serveHook(t, r, t.TempDir()), r
}

func same(t *testing.T, want, got recorded.Outcome) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGoneHook(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	h := hook{socket: s.Path(), id: register(s, r), directory: t.TempDir()}
	s.Unregister(h.id)
	same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR hook context gone\n"}, h.call(t, nil, "relation-get", "user"))
}

func TestNoSocket(t *testing.T) {
	path := socketPath(t)
	h := hook{socket: path, id: "x", directory: t.TempDir()}
	same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR cannot connect to " + path + ": no such file or directory\n"}, h.call(t, nil, "relation-get", "user"))
	leaveSocket(t, path)
	same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR cannot connect to " + path + ": connection refused\n"}, h.call(t, nil, "relation-get", "user"))
}

func TestClientIDAndSocketInArguments(t *testing.T) {
	h, _ := modernHook(t)
	wrong := hook{socket: "/nowhere", id: "nobody", directory: h.directory}
	want := recorded.Outcome{Stdout: "root\n"}
	same(t, want, wrong.call(t, nil, "relation-get", "--client-id", h.id, "user", "--socket="+h.socket))
	same(t, want, wrong.call(t, nil, "relation-get", "--client_id="+h.id, "--socket", h.socket, "user"))
}

func TestHelpInsideAHook(t *testing.T) {
	h, _ := modernHook(t)
	got := h.call(t, nil, "relation-set", "--help")
	if got.Exit != 0 || !strings.Contains(got.Stdout, "--file") || got.Stderr != "" {
		t.Errorf("got %+v", got)
	}
}

// pipe returns a pipe that contains a text.
func pipe(t *testing.T, text string) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); defer w.Close(); w.WriteString(text) }()
	t.Cleanup(func() { r.Close(); <-done })
	return r
}

func TestStdinUnasked(t *testing.T) {
	h, hook := modernHook(t)
	same(t, recorded.Outcome{}, h.call(t, pipe(t, "piped: yes\n"), "relation-set"))
	file := filepath.Join(h.directory, "f")
	if err := os.WriteFile(file, []byte("filed: yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	same(t, recorded.Outcome{}, h.call(t, f, "relation-set"))
	same(t, recorded.Outcome{}, h.call(t, nil, "relation-set")) // /dev/null
	got, err := hook.Settings(t.Context(), hookapi.Node{Relation: 0, Unit: "wordpress/0"})
	if diff := cmp.Diff(map[string]string{"private-address": "10.0.3.7", "piped": `yes`, "filed": "yes"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestStdinIsNotEatenBesideArguments(t *testing.T) {
	h, _ := modernHook(t)
	r := pipe(t, "the loop's input")
	same(t, recorded.Outcome{}, h.call(t, r, "relation-set", "a=1"))
	rest := make([]byte, 100)
	if n, _ := r.Read(rest); string(rest[:n]) != "the loop's input" {
		t.Errorf("left over: %q", rest[:n])
	}
}

func TestLargeSettings(t *testing.T) {
	h, _ := modernHook(t)
	value := strings.Repeat("0123456789abcdef", 10<<16) // 10 MiB
	same(t, recorded.Outcome{}, h.call(t, pipe(t, "large: "+value+"\n"), "relation-set", "--file", "-"))
	got := h.call(t, nil, "relation-get", "large", "wordpress/0")
	if got.Exit != 0 || got.Stdout != value+"\n" {
		t.Errorf("got exit %d, %d bytes, %q", got.Exit, len(got.Stdout), got.Stderr)
	}
	tooLarge := h.call(t, pipe(t, "large: "+value+value+"\n"), "relation-set", "--file", "-")
	same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR read /dev/stdin: the input has more than 17 MiB, but a value can have at most 16 MiB\n"}, tooLarge)
}

func TestOutputGoesToTheCallersFiles(t *testing.T) {
	h, _ := modernHook(t)
	out := filepath.Join(h.directory, "out")
	if err := os.WriteFile(out, []byte("something longer that stood there before"), 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, recorded.Outcome{}, h.call(t, nil, "relation-get", "-o", "out", "user"))
	if data, err := os.ReadFile(out); err != nil || string(data) != "root\n" {
		t.Errorf("out holds %q, %v", data, err)
	}
	same(t, recorded.Outcome{Stdout: "root\n"}, h.call(t, nil, "relation-get", "-o", "/dev/stdout", "user"))
	same(t, recorded.Outcome{Stderr: "root\n"}, h.call(t, nil, "relation-get", "-o", "/dev/stderr", "user"))
	same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR open /nonexistent/x: no such file or directory\n"},
		h.call(t, nil, "relation-get", "-o", "/nonexistent/x", "user"))
}

func TestFilesThatCannotBeRead(t *testing.T) {
	h, _ := modernHook(t)
	for path, want := range map[string]string{
		"missing": "open missing: no such file or directory",
		".":       "read .: is a directory",
	} {
		same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR " + want + "\n"}, h.call(t, nil, "relation-set", "--file", path))
	}
}

func TestReaderThatGoesAway(t *testing.T) {
	h, _ := modernHook(t)
	same(t, recorded.Outcome{}, h.call(t, pipe(t, "large: "+strings.Repeat("x", 1<<20)), "relation-set"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := h.command(t, nil, "relation-get", "large", "wordpress/0")
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("got %v, stderr %q", err, &errs)
	}
	w.Close()
}

// TestReaderThatDoesNotRead checks that the server waits for a slow reader of an answer while the hook runs,
// and only for a moment after the hook.
func TestReaderThatDoesNotRead(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	large := strings.Repeat("x", 4<<20) // more than fits into a socket's buffers
	if err := r.SetSettings(t.Context(), hookapi.Node{Relation: 0, Unit: "wordpress/0"}, map[string]*string{"large": &large}); err != nil {
		t.Fatal(err)
	}
	s := start(t)
	id := register(s, r)
	p := connect(t, s.Path())
	p.send("_command", "tool", "_ask", "1", "client_id", id, "argv", "relation-get\x00large\x00wordpress/0", "stdin", "none")
	s.Unregister(id) // this returns, because the call has ended or was cancelled
	if box := p.receive(); box.Value("stdout") != large+"\n" && box["_error_code"] != "UNKNOWN_CLIENT" {
		t.Errorf("got %d bytes of stdout, error %q", len(box.Value("stdout")), box["_error_code"])
	}
}

func TestParallelTools(t *testing.T) {
	h, _ := modernHook(t)
	var wait sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		wait.Go(func() { same(t, recorded.Outcome{}, h.call(t, nil, "relation-set", key+"=1")) })
	}
	wait.Wait()
	got := h.call(t, nil, "relation-get", "--format=json", "-", "wordpress/0")
	same(t, recorded.Outcome{Stdout: `{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","private-address":"10.0.3.7"}` + "\n"}, got)
}

// stuck is a hook whose store never answers.
type stuck struct {
	hookapi.Hook
	asked chan struct{}
}

func (s stuck) Settings(ctx context.Context, _ hookapi.Node) (map[string]string, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestUnregisterEndsCallsInFlight(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	slow := stuck{r, make(chan struct{})}
	h := hook{socket: s.Path(), id: register(s, slow), directory: t.TempDir()}
	tool, seed := make(chan recorded.Outcome, 1), make(chan string, 1) // buffered for one answer each, which may remain unread
	go func() { tool <- h.call(t, nil, "relation-get", "user") }()
	<-slow.asked
	go func() {
		box := connect(t, s.Path()).call("get", "client_id", h.id, "unit_name", "mysql/0", "setting_name", "user")
		seed <- box["_error_code"]
	}()
	<-slow.asked
	s.Unregister(h.id)
	same(t, recorded.Outcome{Exit: 1, Stderr: "ERROR hook context gone\n"}, <-tool)
	if code := <-seed; code != "UNKNOWN_CLIENT" {
		t.Errorf("get answered %q", code)
	}
}

func TestUnregisterEndsAWaitForStdin(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	id := register(s, r)
	p := connect(t, s.Path())
	box := p.call("tool", "client_id", id, "argv", "relation-set\x00-", "cwd", "/", "stdin", "fifo")
	if box["want"] != "-" {
		t.Fatalf("got %v", box)
	}
	s.Unregister(id)
	if box := p.receive(); box["_error_code"] != "UNKNOWN_CLIENT" {
		t.Errorf("got %v", box)
	}
}

func TestCloseWithCallsInFlight(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	slow := stuck{r, make(chan struct{})}
	h := hook{socket: s.Path(), id: register(s, slow), directory: t.TempDir()}
	tool := make(chan recorded.Outcome, 1) // the answer is read after Close
	go func() { tool <- h.call(t, nil, "relation-get", "user") }()
	<-slow.asked
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case got := <-tool:
		if got.Exit != 1 {
			t.Errorf("got %+v", got)
		}
	case <-time.After(testTimeout):
		t.Error("the tool still waits")
	}
}
