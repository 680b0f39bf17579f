package early_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/amp"
	"bijou/testscripts/kit/need"
)

// road is one call of a hook tool, to make both with the early and with the ordinary client.
type road struct {
	argv          []string
	first, second string
	env           []string
	prepare       prepare
}

// compare makes a call with the early and with the ordinary client, and checks that the outcomes are equal.
func compare(t testing.TB, binary string, r road) outcome {
	t.Helper()
	var outcomes [2]outcome
	for i, env := range [][]string{nil, {ordinary}} {
		a := startAgent(t, r.first, r.second)
		cmd := a.command(binary, r.argv...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(append(cmd.Env, r.env...), env...)
		finish := func() string { return "" }
		if r.prepare != nil {
			finish = r.prepare(t, a, cmd)
		}
		o, err := a.run(cmd)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		// Each of the two calls gets its own directory and socket.
		o.Written = finish()
		o.Heard = strings.ReplaceAll(o.Heard, cmd.Dir, "DIR")
		o.Stderr = strings.ReplaceAll(o.Stderr, cmd.Dir, "DIR")
		o.Stderr = strings.ReplaceAll(o.Stderr, filepath.Dir(a.listener.Addr().String()), "SOCKET")
		outcomes[i] = o
	}
	if diff := cmp.Diff(outcomes[1], outcomes[0]); diff != "" {
		t.Errorf("the clients differ (-ordinary +early):\n%.2000s", diff)
	}
	return outcomes[0]
}

func TestRoads(t *testing.T) {
	need.Whole(t)
	if os.Getenv("BIJOU_TEST_EMULATOR") != "" {
		t.Skip("skipped: what shells do to descriptors is tried on the machine itself")
	}
	binary := build(t)
	fine, want := box("exit", "0", "stdout", "fine\n"), box("want", "-")
	long := strings.Repeat("0123456789", 100_000)
	roads := map[string]road{
		"plain":                                  {first: fine},
		"other exit code, both outputs":          {first: box("exit", "3", "stderr", "ERROR no\n", "stdout", "some")},
		"nothing to print":                       {first: box("exit", "0")},
		"an answer of many pieces":               {first: box("exit", "0", "stdout", long)},
		"an answer of exactly one piece":         {first: box("exit", "0", "stdout", long[:amp.MaxValue])},
		"stderr of many pieces":                  {first: box("exit", "1", "stderr", long)},
		"stdin, short":                           {first: want, second: fine, prepare: fed("fed")},
		"stdin, empty":                           {first: want, second: fine, prepare: fed("")},
		"stdin of exactly one piece":             {first: want, second: fine, prepare: fed(long[:amp.MaxValue])},
		"stdin of one byte less":                 {first: want, second: fine, prepare: fed(long[:amp.MaxValue-1])},
		"stdin of many pieces":                   {first: want, second: fine, prepare: fed(long)},
		"stdin that is too large":                {first: want, second: fine, prepare: fed(strings.Repeat(long, 18))},
		"stdin wanted twice":                     {first: want, second: want + fine, prepare: fed("fed")},
		"stdin, then a file":                     {first: want, second: box("want", "short") + fine, prepare: through(`exec "$0" "$@" <short`)},
		"a file":                                 {first: box("want", "short"), second: fine, prepare: through(`exec "$0" "$@"`)},
		"a file that is not there":               {first: box("want", "none"), second: fine},
		"stdin by its name":                      {first: box("want", "/dev/stdin"), second: fine, prepare: fed("fed")},
		"an inherited descriptor":                {first: box("want", "/dev/fd/7"), second: fine, prepare: through(`exec "$0" "$@" 7<long`)},
		"stdin is a file":                        {first: want, second: fine, prepare: through(`exec "$0" "$@" <long`)},
		"stdin is a file, read on by others":     {first: want, second: fine, prepare: through(`{ "$0" "$@"; cat; } <short`)},
		"stdin is closed":                        {first: want, second: fine, prepare: through(`exec "$0" "$@" <&-`)},
		"stdin is a folder":                      {first: want, second: fine, prepare: through(`exec "$0" "$@" </`)},
		"stdin comes in parts":                   {first: want, second: fine, prepare: through(`{ printf a; sleep 0.1; printf b; } | "$0" "$@"`)},
		"stdout is closed":                       {first: fine, prepare: through(`exec "$0" "$@" >&-`)},
		"stderr is closed":                       {first: box("exit", "1", "stderr", "ERROR no\n"), prepare: through(`exec "$0" "$@" 2>&-`)},
		"stdout is full":                         {first: box("exit", "0", "stderr", "said\n", "stdout", "fine\n"), prepare: through(`exec "$0" "$@" >/dev/full`)},
		"nobody reads":                           {first: fine, prepare: through(`{ "$0" "$@"; echo "$?" >out; } | true`)},
		"nobody reads what is long":              {first: box("exit", "0", "stdout", long), prepare: through(`{ "$0" "$@"; echo "$?" >out; } | head -c 1`)},
		"a file's end is the limit":              {first: box("exit", "0", "stdout", "0123456789"), prepare: through(`ulimit -f 1; exec "$0" "$@" >>long`)},
		"output to a file":                       {first: box("exit", "0", "write", "out", "stdout", "fine\n"), prepare: through(`exec "$0" "$@"`)},
		"output to a file that cannot be":        {first: box("exit", "0", "write", "/none/x", "stdout", "fine\n")},
		"output to stderr":                       {first: box("exit", "0", "write", "/dev/stderr", "stdout", "fine\n")},
		"an error":                               {first: box("_error", "1", "_error_code", "UNKNOWN", "_error_description", "why")},
		"a hook that has ended":                  {first: box("_error", "1", "_error_code", "UNKNOWN_CLIENT", "_error_description", "why")},
		"closed at once":                         {first: ""},
		"closed in the middle":                   {first: fine[:len(fine)-3]},
		"closed before the end":                  {first: fine[:len(fine)-2]},
		"no AMP":                                 {first: "HTTP/1.1 400\r\n"},
		"no exit code":                           {first: box("stderr", "said")},
		"an exit code that is none":              {first: box("exit", "x")},
		"more than one box":                      {first: fine + fine},
		"arguments":                              {argv: []string{"relation-get", "", "a b", "\xff", "--format=json"}, first: fine},
		"arguments of many pieces":               {argv: []string{"relation-set", long[:100_000]}, first: fine},
		"arguments of exactly one piece":         {argv: []string{"x/relation-set", long[:amp.MaxValue-len("x/relation-set\x00")]}, first: fine},
		"a byte more":                            {argv: []string{"x/relation-set", long[:amp.MaxValue-len("x/relation-set\x00")+1]}, first: fine},
		"an id in argv":                          {argv: []string{"relation-get", "--client-id", "y"}, first: fine},
		"no tool":                                {argv: []string{"relation"}, first: fine},
		"a tool's path, and nothing":             {argv: []string{"relation-get/"}, first: fine},
		"two names":                              {argv: []string{"relation-get relation-ids"}, first: fine},
		"no name":                                {argv: []string{""}, first: fine},
		"a second id":                            {first: fine, prepare: twice("JUJU_CLIENT_ID=y")},
		"a second socket":                        {first: fine, prepare: twice("JUJU_SOCKET=/none")},
		"a socket's name of 107 bytes":           {first: fine, prepare: through(farSocket(107))},
		"a socket's name of 108 bytes":           {first: fine, prepare: through(farSocket(108))},
		"a folder that is gone":                  {first: fine, prepare: through(`mkdir gone; cd gone; rmdir "$PWD"; exec "$OLDPWD/relation-get" "$@"`)},
		"a large environment":                    {env: []string{"X=" + long[:100_000]}, first: fine},
		"signals are ignored by whoever calls":   {first: fine, prepare: through(`trap '' PIPE; { "$0" "$@"; echo "$?" >out; } | true`)},
		"a pipe that is full and does not block": {first: box("exit", "0", "stdout", long[:60_000]), prepare: fullPipe},
		"stdin that is empty and does not block": {first: want, second: fine, prepare: slowStdin},
		"stopped, and continued, twice":          {first: want, second: fine, prepare: signalled("fed", syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGCONT)},
		"stdin is a terminal":                    {first: want, second: fine, prepare: typed("fed")},
		"stdin that is reset":                    {first: want, second: fine, prepare: resetting(0, "fed")},
		"stdout that is reset":                   {first: fine, prepare: resetting(1, "")},
		"stdout that is reset, stderr is not":    {first: box("exit", "1", "stderr", "said\n", "stdout", long), prepare: resetting(1, "")},
		"all descriptors are closed":             {first: want, second: fine, prepare: through(`"$0" "$@" <&- >&- 2>&-; echo "$?" >out`)},
	}
	for s := range byte(65) {
		if !slices.Contains(noWays, s) {
			roads[fmt.Sprint("signal ", s)] = road{first: fine, prepare: findWay(s, "")}
		}
	}
	for name, r := range roads {
		t.Run(name, func(t *testing.T) {
			if r.argv == nil {
				r.argv = []string{"relation-get"}
			}
			compare(t, binary, r)
		})
	}
}

// TestFatalSignals checks the difference between the clients. On a fatal signal the early client prints no
// goroutines. A signal that the caller ignores ends neither client.
func TestFatalSignals(t *testing.T) {
	if os.Getenv("BIJOU_TEST_EMULATOR") != "" {
		t.Skip("skipped: an emulator has signals of its own")
	}
	for script, want := range map[string]outcome{
		`exec "$0" "$@"`:               {Exit: -1},
		`trap '' QUIT; exec "$0" "$@"`: {Stdout: "fine\n"},
	} {
		t.Run(script, func(t *testing.T) {
			a := startAgent(t, box("exit", "0", "stdout", "fine\n"), "")
			cmd := a.command(build(t), "relation-get")
			cmd.Dir = t.TempDir()
			through("ulimit -c 0; "+script)(t, a, cmd)
			a.before = func() { syscall.Kill(a.pid, syscall.SIGQUIT) }
			o, err := a.run(cmd)
			if o.Heard = ""; err != nil || o != want {
				t.Errorf("got %+v (%v), want %+v", o, err, want)
			}
		})
	}
}

// FuzzRoads calls tools with both clients, with the same arguments, stdin, answers and callers.
func FuzzRoads(f *testing.F) {
	for _, answer := range []string{
		box("exit", "0", "stdout", "fine\n"), box("exit", "1", "stderr", "ERROR no\n"), box("want", "-"), box("want", "short"),
		box("exit", "0", "write", "/dev/stderr", "stdout", "x"), box("_error_code", "UNKNOWN_CLIENT"), box("exit", "0", "stdout", "x", "stdout.1", "y"),
		box("exit", "0", "stdout", "x", "stderr", "y"), box("exit", "x"), box("want", "-", "exit", "0"), "HTTP/1.1", "\x00\x00", "",
	} {
		f.Add([]byte("relation-get\x00-\x00app/0"), []byte("fed"), []byte(answer), []byte(box("exit", "0", "stdout", "second")), byte(0))
	}
	for _, way := range []byte{byte(syscall.SIGTERM), byte(syscall.SIGUSR1), byte(syscall.SIGPIPE), 64, resetInput, resetOutput, fullOutput, closedOutput} {
		f.Add([]byte("relation-get"), []byte("fed"), []byte("want=-"), []byte("exit=3\nstderr=no\nstdout=second"), way)
	}
	for _, pairs := range []string{"exit=0\nstdout=fine", "exit=1\nstderr=no\nstdout=x\nstdout.1=y", "want=-", "want=short\nexit=3", "_answer=1\nexit=2\nexit=1\nwrite=/dev/stderr\nstdout=x"} {
		f.Add([]byte("relation-set\x00a=b"), []byte("fed"), []byte(pairs), []byte("exit=0\nstdout=second"), byte(0))
	}
	f.Add([]byte("x/relation-set\x00--file\x00-"), []byte{}, []byte(box("want", "-")+"more"), []byte{}, byte(0))
	f.Add([]byte("relation-get\x00--client-id=y"), []byte{}, []byte(box("exit", "2")), []byte{}, byte(0))
	if emulator := os.Getenv("BIJOU_TEST_EMULATOR"); emulator != "" {
		if _, err := exec.LookPath(emulator); err != nil {
			need.Skip(f, "qemu", err)
		}
	}
	binary := build(f)
	f.Fuzz(func(t *testing.T, argv, stdin, first, second []byte, way byte) {
		if way %= allWays; slices.Contains(noWays, way) {
			t.Skip("skipped: the clients end differently, or not at all")
		}
		if namesFile(first) || namesFile(second) || bytes.Count(argv, []byte{0}) > 100 {
			t.Skip("skipped: it may write files, or read what is no test's")
		}
		compare(t, binary, road{argv: strings.Split(string(argv), "\x00"), first: frame(first), second: frame(second), prepare: findWay(way, string(stdin))})
	})
}

// frame encodes lines of the form KEY=VALUE as a box, so that the text is still a box after the fuzzer's
// changes. It returns other text unchanged.
func frame(answer []byte) string {
	var wire []byte
	for line := range strings.SplitSeq(string(answer), "\n") {
		key, value, found := strings.Cut(line, "=")
		if !found || key == "" || len(key) > amp.MaxKey {
			return string(answer)
		}
		wire = amp.Append(wire, key, value)
	}
	return string(amp.End(wire))
}

// namesFile reports whether an answer contains the path of a file that is not in the seeds.
func namesFile(answer []byte) bool {
	rest := answer
	for _, path := range []string{"/dev/stderr", "short"} {
		rest = bytes.ReplaceAll(rest, []byte(path), nil)
	}
	return bytes.Contains(rest, []byte("write")) && !bytes.Contains(answer, []byte("/dev/stderr")) ||
		bytes.ContainsAny(rest, "/") && bytes.Contains(rest, []byte("want"))
}
