package bootworld

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/fakes/github"
)

// bootWorld is the surroundings of a script about boot servers: the server of releases and the receiver of
// alerts. Each starts at the script's request.
type bootWorld struct {
	releases *github.Server
	alerts   *mailbox
	depot    *depot
	cluster  *etcdtest.Cluster
}

// bootWorldOf returns the bootWorld of the script.
func bootWorldOf(ts *testscript.TestScript) *bootWorld {
	return ts.Value("boot world").(*bootWorld)
}

// necoState returns the URL of the script's store for neco's keys.
func necoState(env *testscript.Env) string {
	if url := env.Getenv("BIJOU_STATE"); url != "" {
		return url
	}
	return "sqlite:" + filepath.Join(env.WorkDir, "neco.db")
}

// necoBin DIR VERSION MANIFEST: puts the program into its own directory, under all of neco's names,
// beside MANIFEST with VERSION as its version.
func necoBin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: necobin DIR VERSION MANIFEST")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	binary, err := os.Executable()
	ts.Check(err)
	if err := os.Link(binary, filepath.Join(dir, "bijou")); err != nil {
		data, err := os.ReadFile(binary)
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(dir, "bijou"), data, 0o755))
	}
	for _, name := range []string{"neco", "neco-updater", "neco-worker"} {
		ts.Check(os.Symlink("bijou", filepath.Join(dir, name)))
	}
	manifest := "version: " + args[1] + "\n" + ts.ReadFile(args[2])
	ts.Check(os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o644))
}

// releases VERB ARG...: a server that acts as GitHub.
//
//	start               starts the server, and sets GITHUB to its URL
//	publish TAG [WORD]  publishes a release whose package has no plan. WORD is pre, draft,
//	                    or the only file of the release
//	tarball TAG FILE [WORD]
//	                    publishes a release that can be installed: this program
//	                    with the manifest in FILE, and files for other platforms. WORD is
//	                    wrong-sums (the sums of the packages are wrong), dies (the program
//	                    works as a command and exits as a daemon), bare (there is no file
//	                    manifest.yaml), other-plan (the file manifest.yaml is a different
//	                    one), or no-version (the manifest has no version)
//	retag TAG NEW [renamed]
//	                    publishes the files of a release under the tag NEW. With renamed,
//	                    the names of its packages match the new tag
//	delete TAG          deletes a release
//	limit N DURATION    answers N more lists, until the duration is over
//	fault NAME          misbehaves from now on
//	key NAME            sets MINISIGN_KEY to the public key called NAME
//	sign TAG NAME [old] signs the release with the key called NAME. With old, it uses minisign's old format
//	tamper TAG          adds a line to the release's sums after they were signed
//	asked N             fails if lists were requested fewer than N times
func releases(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: releases start|publish|tarball|retag|delete|limit|fault|key|sign|tamper|asked ...")
	}
	w := bootWorldOf(ts)
	switch verb, args := args[0], append(args[1:], "", "", ""); verb {
	case "start":
		w.releases = github.New()
		ts.Defer(w.releases.Close)
		ts.Setenv("GITHUB", w.releases.URL())
	case "publish":
		files := map[string][]byte{"notes.txt": []byte("none\n")}
		if name := args[1]; name != "" && name != "pre" && name != "draft" {
			files[filepath.Base(name)] = []byte(ts.ReadFile(name))
		} else {
			name, packed, err := planless(args[0])
			ts.Check(err)
			files[name] = packed
		}
		w.releases.Publish(github.Release{Tag: args[0], Pre: args[1] == "pre", Draft: args[1] == "draft", Files: files})
	case "tarball":
		files, err := Installable(args[0], ts.ReadFile(args[1]), args[2])
		ts.Check(err)
		w.releases.Publish(github.Release{Tag: args[0], Files: files})
	case "retag":
		_, version, _ := strings.Cut(args[0], "-")
		_, newer, _ := strings.Cut(args[1], "-")
		files := map[string][]byte{}
		ts.Check(w.releases.Change(args[0], func(old map[string][]byte) {
			for name, data := range old {
				if args[2] == "renamed" {
					name = strings.Replace(name, version, newer, 1)
				}
				files[name] = data
			}
		}))
		w.releases.Publish(github.Release{Tag: args[1], Files: files})
	case "delete":
		w.releases.Delete(args[0])
	case "limit":
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		d, err := time.ParseDuration(args[1])
		ts.Check(err)
		w.releases.Limit(n, time.Now().Add(d).Unix())
	case "fault":
		ts.Check(w.releases.Misbehave(github.Fault(args[0])))
	case "key":
		ts.Setenv("MINISIGN_KEY", github.NewSigner(args[0]).PublicKey())
	case "sign":
		ts.Check(w.releases.Change(args[0], func(files map[string][]byte) {
			sign := github.NewSigner(args[1]).Sign
			if args[2] == "old" {
				sign = github.NewSigner(args[1]).SignPlain
			}
			files["SHA256SUMS.minisig"] = sign(files["SHA256SUMS"])
		}))
	case "tamper":
		ts.Check(w.releases.Change(args[0], func(files map[string][]byte) {
			files["SHA256SUMS"] = append(files["SHA256SUMS"], strings.Repeat("0", 64)+"  more\n"...)
		}))
	case "asked":
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		if got := w.releases.Count().Lists; got < n {
			ts.Fatalf("releases were asked for %d times only", got)
		}
	default:
		ts.Fatalf("releases: unknown verb %q", verb)
	}
}

// mailbox receives alerts and writes each as a line of a file.
type mailbox struct {
	mu     sync.Mutex
	file   string
	broken bool
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || m.broken {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	f, err := os.OpenFile(m.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(f, "%s %s\n", strings.TrimPrefix(r.URL.Path, "/"), body)
	f.Close()
}

// alerts VERB: a receiver of alerts.
//
//	start FILE  starts the receiver, and sets ALERTS to its URL. The file gets a line
//	            "PATH BODY" for each alert
//	break       answers 503 from now on
//	mend        works again
func alerts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: alerts start FILE|break|mend")
	}
	w := bootWorldOf(ts)
	switch args[0] {
	case "start":
		w.alerts = &mailbox{file: ts.MkAbs(args[1])}
		ts.Check(os.WriteFile(w.alerts.file, nil, 0o600))
		server := httptest.NewServer(w.alerts)
		ts.Defer(server.Close)
		ts.Setenv("ALERTS", server.URL)
	case "break", "mend":
		w.alerts.mu.Lock()
		defer w.alerts.mu.Unlock()
		w.alerts.broken = args[0] == "break"
	default:
		ts.Fatalf("alerts: unknown verb %q", args[0])
	}
}
