package store

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/state/constraints"
	"bijou/testscripts/fakes/charmhub"
)

// storeWorld contains the charm store's server of each script.
type storeWorld struct {
	servers sync.Map // *charmhub.Server by *testscript.TestScript
}

// setHostBase sets HOSTBASE to the base of machines on this host, for example debian@12.
func setHostBase(env *testscript.Env) {
	release := map[string]string{}
	if file, err := os.Open("/etc/os-release"); err == nil {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), "=")
			release[key] = strings.Trim(value, `"`)
		}
	}
	env.Setenv("HOSTBASE", release["ID"]+"@"+release["VERSION_ID"])
	env.Setenv("ARCH", constraints.ArchOf(runtime.GOARCH))
}

// run is the command charmhub:
//
//	charmhub start                      starts the server, and makes juju use it
//	charmhub stop                       stops the server, so that nothing listens at its address
//	charmhub publish DIR KEY=VALUE...   publishes a directory. The keys are name, revision, channel, base, arch, track
//	                                    (the default track), and resource=NAME:FILE, which publishes the file as the
//	                                    next revision of the resource
//	charmhub fault NAME [TIMES]         makes the server misbehave
//	charmhub release                    continues downloads that a fault has stopped
//	charmhub forget                     forgets the requests so far
//	charmhub asked REGEXP COUNT         fails unless COUNT requests have a method, path and body that match
func (w *storeWorld) run(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: charmhub COMMAND ARG...")
	}
	if args[0] == "start" {
		s := charmhub.New()
		w.servers.Store(ts, s)
		ts.Defer(s.Close)
		ts.Setenv("BIJOU_CHARMHUB_URL", s.URL())
		return
	}

	found, ok := w.servers.Load(ts)
	if !ok {
		ts.Fatalf("charmhub start comes first")
	}
	s := found.(*charmhub.Server)

	switch args[0] {
	case "stop":
		s.Close()
	case "publish":
		publish(ts, s, args[1], args[2:])
	case "fault":
		times := -1
		if len(args) > 2 {
			times, _ = strconv.Atoi(args[2])
		}
		ts.Check(s.Misbehave(charmhub.Fault(args[1]), times))
	case "release":
		s.Release()
	case "forget":
		s.Forget()
	case "asked":
		checkAsked(ts, s, args[1], args[2])
	default:
		ts.Fatalf("there is no command charmhub %s", args[0])
	}
}

func checkAsked(ts *testscript.TestScript, s *charmhub.Server, pattern, want string) {
	n, all := 0, []string{}
	for _, r := range s.Requests() {
		text := fmt.Sprintf("%s %s %s", r.Method, r.Path, r.Body)
		all = append(all, text)
		if regexp.MustCompile(pattern).MatchString(text) {
			n++
		}
	}
	if strconv.Itoa(n) != want {
		ts.Fatalf("%d requests match %q, want %s:\n%s", n, pattern, want, strings.Join(all, "\n"))
	}
}

func publish(ts *testscript.TestScript, s *charmhub.Server, dir string, words []string) {
	given := map[string]string{
		"channel": "latest/stable", "base": ts.Getenv("HOSTBASE"), "arch": ts.Getenv("ARCH"), "revision": "1", "name": filepath.Base(dir),
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		given[key] = value
	}
	revision, err := strconv.Atoi(given["revision"])
	ts.Check(err)

	p := charmhub.Publication{
		Dir: ts.MkAbs(dir), Name: given["name"], Track: given["track"], Channel: given["channel"],
		Bases: strings.Split(given["base"], ","), Arch: given["arch"], Revision: revision,
	}
	if name, file, ok := strings.Cut(given["resource"], ":"); ok {
		p.Resource, p.Content = name, []byte(ts.ReadFile(file))
	}
	ts.Check(s.PublishDir(p))
}
