package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/sqlite"
)

// childRole is a variable that makes the test binary a second process on the store at the path in its
// last argument.
const childRole = "BIJOU_SQLITE_TEST_ROLE"

// TestMain runs four times as many tests in parallel as there are CPUs, unless the command line sets a
// different number, because tests of leases spend most of their time waiting.
func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// roles are the actions of a child process. Each prints lines, and usually waits to be killed.
var roles = map[string]func(path string) error{
	"saturate":  commitWithoutEnd,
	"lease":     holdLease,
	"mute":      commitMutely,
	"lock":      lockFile,
	"increment": incrementMany,
	"answer":    answerPings,
	"list":      listKeys,
}

// child is a test's second process.
type child struct {
	*exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func start(t testing.TB, role, path string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command("/proc/self/exe", "-test.run=^$", path), lines: make(chan string, 1<<16)}
	c.Env = append(os.Environ(), childRole+"="+role)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	check(t, err)
	out, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	c.in = in
	go c.read(out)
	t.Cleanup(c.kill)
	return c
}

func (c *child) read(out io.Reader) {
	defer close(c.lines)
	for s := bufio.NewScanner(out); s.Scan(); {
		c.lines <- s.Text()
	}
}

// kill kills the child with SIGKILL, and waits for its end.
func (c *child) kill() {
	c.Process.Signal(syscall.SIGCONT)
	c.Process.Kill()
	c.Wait()
}

// line returns the next line of the child's output.
func (c *child) line(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			t.Fatal("the child has ended")
		}
		return line
	case <-time.After(time.Minute):
		t.Fatal("the child says nothing")
	}
	return ""
}

// waitForLine waits for a line from stdin, or the end of stdin.
func waitForLine() { bufio.NewReader(os.Stdin).ReadString('\n') }

// commitWithoutEnd writes as fast as it can, and prints the number of each commit.
func commitWithoutEnd(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	for i := 1; ; i++ {
		v := []byte(fmt.Sprint(i, strings.Repeat(" ", i%2000)))
		ops := []store.Op{{Key: "x/a", Value: v}, {Key: "x/b", Value: v}, {Key: fmt.Sprint("y/", i%100), Value: v}}
		if _, err := s.Commit(context.Background(), store.Txn{Ops: ops}); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// holdLease writes a key under a lease whose TTL is the first line of stdin. It prints when the key is
// written, and when the lease ends.
func holdLease(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	ttl, err := time.ParseDuration(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	l, err := s.Lease(ctx, ttl)
	if err != nil {
		return err
	}
	if _, err := s.Commit(ctx, store.Txn{Ops: []store.Op{{Key: "presence/child", Lease: l.ID()}}}); err != nil {
		return err
	}
	fmt.Println("held")
	<-l.Done()
	fmt.Println("done")
	select {}
}

// commitMutely commits without ringing the doorbell, and exits.
func commitMutely(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	sqlite.Mute(s)
	fmt.Println("ready")
	waitForLine()
	if _, err := s.Commit(context.Background(), store.Txn{Ops: []store.Op{{Key: "w/mute"}}}); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// lockFile holds the write lock until it reads a line from stdin.
func lockFile(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fmt.Println("locked")
	waitForLine()
	if _, err := db.Exec("ROLLBACK"); err != nil {
		return err
	}
	fmt.Println("free")
	select {}
}

// incrementMany increments a key a hundred times.
func incrementMany(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	for range 100 {
		if err := increment(s, "n"); err != nil {
			return err
		}
	}
	fmt.Println("counted")
	return s.Close()
}

// answerPings writes a pong for every ping.
func answerPings(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	w, err := s.Watch(ctx, 0, store.Below("ping"))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		if _, err := w.Next(ctx); err != nil {
			return err
		}
		if _, err := s.Commit(ctx, store.Txn{Ops: []store.Op{{Key: "pong"}}}); err != nil {
			return err
		}
	}
}

// listKeys prints the keys of the store, or the error if it cannot read them.
func listKeys(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	defer s.Close()
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()

	var keys []string
	kvs, err := snapshot.List(ctx, "")
	for _, kv := range kvs {
		keys = append(keys, kv.Key)
	}
	fmt.Println(strings.Join(keys, " "))
	return err
}
