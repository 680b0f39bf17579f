package bootworld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/await"
	"bijou/updater/keys"
)

// shows DURATION REGEXP NECO: runs "neco status --watch" until one of the states that it shows matches.
// That costs only one process. It fails after the duration, but not within a minute, so that a busy or suspended
// machine gets enough time.
func shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: shows DURATION REGEXP NECO")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	limit = max(limit, time.Minute)
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	program := args[2]
	if strings.Contains(program, "/") {
		program = ts.MkAbs(program)
	}
	cmd := exec.CommandContext(ctx, program, "status", "--watch")
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "NECO_STATE="+ts.Getenv("NECO_STATE"), "NO_COLOR=1")
	cmd.WaitDelay = time.Second
	seen := &frames{want: want, found: cancel}
	cmd.Stdout, cmd.Stderr = seen, seen
	// The command is always killed, so its error is ignored if its output matches.
	err = cmd.Run()
	if !seen.matched() {
		ts.Fatalf("within %s, the status did not come to match %q: %v; it was\n%s", limit, args[1], err, seen.last())
	}
}

// frames splits the output into the states that it shows, and compares each with a pattern.
type frames struct {
	want  *regexp.Regexp
	found func()

	mu   sync.Mutex
	text []byte // from the start of the last state
	ok   bool
}

// Write receives the output: states that are separated by a line of hyphens.
func (f *frames) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = append(f.text, p...)
	for !f.ok {
		frame, rest, more := bytes.Cut(f.text, []byte("---\n"))
		if f.want.Match(frame) {
			f.ok = true
			f.found()
		}
		if !more {
			break
		}
		f.text = rest
	}
	return len(p), nil
}

func (f *frames) matched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ok
}

func (f *frames) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.text)
}

// stored PREFIX: prints neco's keys below the prefix with their values.
func stored(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stored PREFIX")
	}
	ctx := context.Background()
	k, err := keyspace.Open(ctx, ts.Getenv("NECO_STATE"), keys.DefaultPrefix)
	ts.Check(err)
	defer k.Close()
	ts.Check(k.View(ctx, func(v *keyspace.View) error {
		all, err := v.List(args[0])
		for _, kv := range all {
			fmt.Fprintf(ts.Stdout(), "%s %s\n", kv.Key, kv.Value)
		}
		return err
	}))
}

// address NAME: sets NAME to a local address where nothing listens. The kernel never assigns that address to
// a program that requests any free address.
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: address NAME")
	}
	for range 100 {
		at := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", at); err == nil {
			ts.Check(l.Close())
			ts.Setenv(args[0], at)
			return
		}
	}
	ts.Fatalf("no address is free")
}

// get URL REGEXP: gets the URL until its content matches, for a minute at most.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: get URL REGEXP")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	await.Until(ts, await.Poll{Limit: time.Minute, Pause: 50 * time.Millisecond}, fmt.Sprintf("%s matches %q", args[0], args[1]), func() string {
		body, err := fetch(args[0])
		return await.Unless(err == nil && want.Match(body), "%v\n%s", err, body)
	})
}

// fetch returns the content at the URL.
func fetch(url string) ([]byte, error) {
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return body, err
}
