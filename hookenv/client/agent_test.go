package client_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// testTimeout limits the wait for events that should happen immediately.
const testTimeout = time.Minute

// agent accepts one connection, reads one box, and continues with talk. It closes the connection when
// talk returns.
func agent(t *testing.T, talk func(conn net.Conn)) (env []string) {
	folder, err := os.MkdirTemp("", "bijou")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(testTimeout))
		if receive(conn) != nil {
			talk(conn)
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done; os.RemoveAll(folder) })
	return []string{"JUJU_CLIENT_ID=x", "JUJU_SOCKET=" + path}
}

// receive reads one box. It returns nil if the client sends none.
func receive(conn net.Conn) amp.Box {
	d := amp.Decoder{Limit: 1 << 20}
	chunk := make([]byte, 4096)
	for {
		if box, _ := d.Next(); box != nil {
			return box
		}
		n, err := conn.Read(chunk)
		if n == 0 && err != nil {
			return nil
		}
		d.Feed(chunk[:n])
	}
}

// box returns an answer as the server sends it.
func box(pairs ...string) string {
	encoded := amp.Append(nil, wire.KeyAnswer, "1")
	for i := 0; i < len(pairs); i += 2 {
		encoded = amp.Append(encoded, pairs[i], pairs[i+1])
	}
	return string(amp.End(encoded))
}

func TestAgentThatFails(t *testing.T) {
	whole := box("exit", "3", "stderr", "ERROR no\n", "stdout", "some")
	long := box("exit", "0", "stdout", strings.Repeat("x", 2*amp.MaxValue))
	closed := "ERROR cannot receive an answer from the agent: the agent closed the connection\n"
	for _, tt := range []struct {
		name, wire, want string
		exit             int
	}{
		{"closes at once", "", closed, 1},
		{"closes within a key", whole[:5], closed, 1},
		{"closes before the end", whole[:len(whole)-2], "ERROR no\nsome" + closed, 1},
		{"closes within a long answer", long[:len(long)-100], strings.Repeat("x", amp.MaxValue) + closed, 1},
		{"answers", whole, "ERROR no\nsome", 3},
		{"talks nonsense", "HTTP/1.1 400\r\n", "ERROR cannot receive an answer from the agent: key is longer than 255 bytes\n", 1},
		{"says no exit code", box("stderr", ""), "ERROR cannot parse the agent's answer\n", 1},
		{"closes when a file is sent", box("want", "/dev/null"), closed, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := agent(t, func(conn net.Conn) { io.WriteString(conn, tt.wire) })
			got, exit := runAs(t, env, "relation-get")
			if got != tt.want || exit != tt.exit {
				t.Errorf("got %.300q, exit code %d; want %.300q, %d", got, exit, tt.want, tt.exit)
			}
		})
	}
}

// TestAnswersArePassedOn checks that the client prints each part of an answer immediately, and does not keep
// a large answer in memory.
func TestAnswersArePassedOn(t *testing.T) {
	part := strings.Repeat("x", amp.MaxValue)
	read := make(chan bool)
	env := agent(t, func(conn net.Conn) {
		begin := amp.Append(amp.Append(nil, "exit", "0"), "stdout", part)
		conn.Write(begin)
		<-read
		conn.Write(amp.End(amp.Append(nil, "stdout.1", "end")))
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{"relation-get"}, Env: append(env, "GORACE=atexit_sleep_ms=0")}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len(part))
	_, err = io.ReadFull(stdout, first)
	close(read)
	rest, restErr := io.ReadAll(stdout)
	if waitErr := cmd.Wait(); err != nil || restErr != nil || waitErr != nil || !bytes.Equal(first, []byte(part)) || string(rest) != "end" {
		t.Errorf("got %.20q and %q; %v, %v, %v", first, rest, err, restErr, waitErr)
	}
}

// TestNonBlockingDescriptors checks that an answer is written in full to a pipe that other processes
// have made non-blocking.
func TestNonBlockingDescriptors(t *testing.T) {
	text := strings.Repeat("0123456789", 1<<17)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	set := make(chan error, 1) // one result, even if the client never reads it
	env := agent(t, func(conn net.Conn) {
		set <- syscall.SetNonblock(int(w.Fd()), true)
		conn.Write([]byte(box("want", "-")))
		sent := receive(conn)
		conn.Write([]byte(box("exit", "0", "stdout", sent.Value("value")+text)))
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stdin, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{"relation-set"}, Env: append(env, "GORACE=atexit_sleep_ms=0"), Stdin: stdin, Stdout: w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-set, syscall.SetNonblock(int(stdin.Fd()), true)); err != nil {
		t.Error(err)
	}
	stdin.Close()
	w.Close()
	io.WriteString(feed, "fed ")
	feed.Close()
	got, err := io.ReadAll(r)
	if waitErr := cmd.Wait(); err != nil || waitErr != nil || string(got) != "fed "+text {
		t.Errorf("got %d bytes, %.20q; %v, %v", len(got), got, err, waitErr)
	}
}
