package laws

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is the output of `go list` for one package.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// law is one rule about imports, with the reason that the test prints for a violation.
type law struct {
	what   string
	why    string
	breaks func(p pkg, imp string) bool
}

// remoteProtocol is the protocol between a gateway and its clients.
const remoteProtocol = "bijou/state/store/remote/protocol"

// earlyClient is the only package that is allowed to import unsafe and to change package variables.
const earlyClient = "bijou/hookenv/client/early"

func laws() []law {
	return []law{
		{"main imports multicall only", "main is ten lines; what it would need lives in multicall",
			func(p pkg, imp string) bool {
				return p.ImportPath == "bijou" && imp != "bijou/multicall" && imp != "os"
			}},
		{"only multicall and its rooms import roles", "they are the composition root; everybody else gets interfaces, but neco's commands, which read and write the updater's keys",
			func(p pkg, imp string) bool {
				return isRole(imp) && compositionRoot()[p.ImportPath] == nil && roleOf(p.ImportPath) != roleOf(imp) && !isForTests(p) && !necoReadsUpdater(p, imp)
			}},
		{"a room of multicall imports only what it fits together", "compositionRoot says what that is; a room that knew more would be the root again",
			func(p pkg, imp string) bool {
				fits, ok := compositionRoot()[p.ImportPath]
				return ok && isRole(imp) && !slices.Contains(fits, imp)
			}},
		{"multicall's rooms are imported by multicall and one another only", "who is made does not know its maker; whoever needs the terminal imports multicall/console",
			func(p pkg, imp string) bool {
				return isRoom(imp) && !isRoom(p.ImportPath) && p.ImportPath != "bijou/multicall"
			}},
		{"roles never import one another", "they meet in state; agent alone serves hookenv",
			func(p pkg, imp string) bool {
				a, b := roleOf(p.ImportPath), roleOf(imp)
				return a != "" && b != "" && a != b && !necoReadsUpdater(p, imp)
			}},
		{"no role imports multicall's root", "it makes them; whoever needs the terminal imports multicall/console",
			func(p pkg, imp string) bool {
				return imp == "bijou/multicall" && p.ImportPath != "bijou" && !isForTests(p)
			}},
		{"leader and worker of an update never import one another", "they may be of different versions, and know of one another what stands in the store",
			func(p pkg, imp string) bool {
				return within(p.ImportPath, "bijou/updater/leader") && within(imp, "bijou/updater/worker") ||
					within(p.ImportPath, "bijou/updater/worker") && within(imp, "bijou/updater/leader")
			}},
		{"what is decided of an update knows the records only", "it is a function of what was read; leader and neco's commands carry it out",
			func(p pkg, imp string) bool {
				return p.ImportPath == "bijou/updater/decide" && ours(imp) && !slices.Contains([]string{"bijou/state/keyspace", "bijou/updater", "bijou/updater/clock",
					"bijou/updater/keys", "bijou/updater/record", "bijou/updater/release"}, imp)
			}},
		{"hookenv is imported by agent and multicall only", "the tools run inside the agent and nowhere else",
			func(p pkg, imp string) bool {
				return within(imp, "bijou/hookenv") && !within(p.ImportPath, "bijou/hookenv") &&
					!within(p.ImportPath, "bijou/agent") && p.ImportPath != "bijou/multicall" && !isForTests(p)
			}},
		{"hookenv imports neither state nor agent, but leaves", "it owns the interface it needs (hookapi); agent/hookctx implements it",
			func(p pkg, imp string) bool {
				return within(p.ImportPath, "bijou/hookenv") && ours(imp) && !within(imp, "bijou/hookenv") && !isLeaf(imp)
			}},
		{"hookenv/client imports os, syscall, strconv, hookenv/amp and its own rooms only", "every further import costs each hook tool start-up time",
			func(p pkg, imp string) bool {
				return p.ImportPath == "bijou/hookenv/client" && !within(imp, "bijou/hookenv/client") &&
					!slices.Contains([]string{"os", "syscall", "strconv", "bijou/hookenv/amp"}, imp)
			}},
		{"hookenv/client/early imports syscall, unsafe and constants only", "it runs before Go's runtime, where nothing can be called",
			func(p pkg, imp string) bool {
				return p.ImportPath == earlyClient && !slices.Contains([]string{"syscall", "unsafe", "bijou/hookenv/amp", "bijou/hookenv/client/wire"}, imp)
			}},
		{"unsafe only in hookenv/client/early", "what the kernel lays out before Go's runtime can be had by addresses only; nothing else is so near to the machine",
			onlyIn("unsafe", earlyClient, "bijou/provision/provider/protocol", remoteProtocol)}, // these are generated
		{"hookenv/amp imports strconv only", "it is linked into the thin client",
			func(p pkg, imp string) bool { return p.ImportPath == "bijou/hookenv/amp" && imp != "strconv" }},
		{"state imports no role", "roles meet in state, not the other way round",
			func(p pkg, imp string) bool {
				return within(p.ImportPath, "bijou/state") && ours(imp) && !within(imp, "bijou/state")
			}},
		{"leaves import nothing of bijou", "stores, state/charm, hookenv (never hookenv/client) and all roles may import them, so they may stand on nothing",
			func(p pkg, imp string) bool { return isLeaf(p.ImportPath) && ours(imp) }},
		{"stores import state/store, its handle and leaves only", "a store knows keys and values, no entities, and no other store; remote has its protocol beside that",
			func(p pkg, imp string) bool {
				return within(p.ImportPath, "bijou/state/store") && ours(imp) && imp != "bijou/state/store" && imp != "bijou/state/store/handle" && !isLeaf(imp) &&
					(p.ImportPath != "bijou/state/store/remote" || imp != remoteProtocol)
			}},
		{"a gateway's protocol is imported by its two ends only", "what crosses the wire is the affair of state/store/remote and state/gateway; everybody else has a store",
			func(p pkg, imp string) bool {
				return imp == remoteProtocol && p.ImportPath != "bijou/state/store/remote" && p.ImportPath != "bijou/state/gateway"
			}},
		{"the gateway knows keys, rights, the protocol and leaves only", "it serves any store, and asks who may do what: entities are state's, and rights state/access's",
			func(p pkg, imp string) bool {
				return p.ImportPath == "bijou/state/gateway" && ours(imp) && !isLeaf(imp) &&
					!slices.Contains([]string{"bijou/state/access", "bijou/state/keys", "bijou/state/store", remoteProtocol}, imp)
			}},
		{"only packages of state import stores", "everything durable goes through state, or the key-value layer",
			func(p pkg, imp string) bool {
				return within(imp, "bijou/state/store") && !within(p.ImportPath, "bijou/state") && !isForTests(p)
			}},
		{"the key-value layer is imported by state, the updater and what makes them only", "an environment's keys are the affair of its entities",
			func(p pkg, imp string) bool {
				return imp == "bijou/state/keyspace" && !within(p.ImportPath, "bijou/state") && !within(p.ImportPath, "bijou/updater") &&
					p.ImportPath != "bijou/multicall/necodaemon" && p.ImportPath != "bijou/multicall/neco" && !isForTests(p)
			}},
		{"pure packages import nothing of bijou", "they are shared by all sides and decide nothing; charms alone are files, too, and may use leaves",
			func(p pkg, imp string) bool {
				pure := []string{"bijou/state/charm", "bijou/state/keys", "bijou/state/text", "bijou/state/secret", "bijou/hookenv/amp", "bijou/hookenv/client/wire", "bijou/hookenv/hookapi", "bijou/updater/keys", "bijou/updater/record"}
				return slices.Contains(pure, p.ImportPath) && ours(imp) && (p.ImportPath != "bijou/state/charm" || !isLeaf(imp))
			}},
		{"state/access imports keys and the shape of secrets only", "who may do what is decided on what was read, by whoever stands between an agent and the store",
			func(p pkg, imp string) bool {
				return p.ImportPath == "bijou/state/access" && ours(imp) && imp != "bijou/state/keys" && imp != "bijou/state/secret"
			}},
		{"of state's packages only state/charmsource imports net/http", "it alone asks a server of somebody else's; what is durable needs none",
			func(p pkg, imp string) bool {
				return within(p.ImportPath, "bijou/state") && imp == "net/http" && p.ImportPath != "bijou/state/charmsource"
			}},
		{"only operators' commands ask a store of charms", "an agent has all that it needs in the environment, and its host may have no way out",
			func(p pkg, imp string) bool {
				return imp == "bijou/state/charmsource" && !within(p.ImportPath, "bijou/multicall/juju") && !isForTests(p)
			}},
		{"testscripts is imported by itself and by tests only", "what is for tests is not shipped",
			func(p pkg, imp string) bool {
				return within(imp, "bijou/testscripts") && !within(p.ImportPath, "bijou/testscripts")
			}},
		{"testscripts/kit/await and need import nothing of bijou", "tests of every package wait and skip by them",
			func(p pkg, imp string) bool {
				return slices.Contains([]string{"bijou/testscripts/kit/await", "bijou/testscripts/kit/need"}, p.ImportPath) && ours(imp)
			}},
		{"go-plugin only in provision/plugin", "one importer keeps it replaceable", onlyIn("github.com/hashicorp/go-plugin", "bijou/provision/plugin")},
		{"etcd's client only in state/store/etcd", "one importer keeps it replaceable", onlyIn("go.etcd.io/etcd", "bijou/state/store/etcd")},
		{"SQLite only in state/store/sqlite", "one importer keeps it replaceable", onlyIn("modernc.org/sqlite", "bijou/state/store/sqlite")},
		{"script only in multicall/author", "one importer keeps it replaceable", onlyIn("rsc.io/script", "bijou/multicall/author")},
		{"testscript is for tests only", "it links go/build and testing, which every start of the binary would initialise", onlyIn("github.com/rogpeppe/go-internal", "bijou/testscripts")},
		{"renameio only in state/osutil", "it leaves the folder unsynced: a file that is to last is written by the one function that syncs that, too",
			func(p pkg, imp string) bool {
				return onlyIn("github.com/google/renameio", "bijou/state/osutil")(p, imp) && !isForTests(p)
			}},
		{"kong only where commands and flags are", "everything else takes values, not flags",
			onlyIn("github.com/alecthomas/kong", "bijou/multicall")},
	}
}

func TestLayering(t *testing.T) {
	packages := list(t, "bijou/...")
	for _, p := range packages {
		for _, l := range laws() {
			for _, imp := range p.Imports {
				if l.breaks(p, imp) {
					t.Errorf("%s imports %s.\n  law: %s\n  why: %s", p.ImportPath, imp, l.what, l.why)
				}
			}
		}
		for _, imp := range compositionRoot()[p.ImportPath] {
			if !slices.Contains(p.Imports, imp) {
				t.Errorf("compositionRoot lets %s import %s, which it does not need", p.ImportPath, imp)
			}
		}
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "types"}, path.Base(p.ImportPath)) {
			t.Errorf("%s: a package is named after its idea; this name has none", p.ImportPath)
		}
	}
	for _, p := range packages {
		if !within(p.ImportPath, "bijou/hookenv") {
			continue
		}
		for _, dep := range p.Deps {
			if within(dep, "bijou/state") && !isLeaf(dep) || within(dep, "bijou/agent") {
				t.Errorf("%s reaches %s.\n  law: hookenv reaches neither state nor agent\n  why: it owns the interface it needs", p.ImportPath, dep)
			}
		}
	}
}

// TestLawsCanFail checks that each law refuses a planted import.
func TestLawsCanFail(t *testing.T) {
	wrong := map[string][2]string{
		"main imports multicall only":                                                     {"bijou", "bijou/state"},
		"only multicall and its rooms import roles":                                       {"bijou/multicall/install", "bijou/agent"},
		"a room of multicall imports only what it fits together":                          {"bijou/multicall/daemon", "bijou/agent"},
		"multicall's rooms are imported by multicall and one another only":                {"bijou/multicall/juju", "bijou/multicall/providers"},
		"roles never import one another":                                                  {"bijou/agent", "bijou/provision/local"},
		"no role imports multicall's root":                                                {"bijou/updater", "bijou/multicall"},
		"hookenv is imported by agent and multicall only":                                 {"bijou/multicall/juju", "bijou/hookenv"},
		"hookenv imports neither state nor agent, but leaves":                             {"bijou/hookenv/server", "bijou/state"},
		"hookenv/client imports os, syscall, strconv, hookenv/amp and its own rooms only": {"bijou/hookenv/client", "fmt"},
		"hookenv/client/early imports syscall, unsafe and constants only":                 {"bijou/hookenv/client/early", "os"},
		"unsafe only in hookenv/client/early":                                             {"bijou/hookenv/client", "unsafe"},
		"hookenv/amp imports strconv only":                                                {"bijou/hookenv/amp", "errors"},
		"state imports no role":                                                           {"bijou/state", "bijou/provision"},
		"leaves import nothing of bijou":                                                  {"bijou/state/backoff", "bijou/state/keys"},
		"stores import state/store, its handle and leaves only":                           {"bijou/state/store/etcd", "bijou/state/store/sqlite"},
		"a gateway's protocol is imported by its two ends only":                           {"bijou/state/storeurl", "bijou/state/store/remote/protocol"},
		"the gateway knows keys, rights, the protocol and leaves only":                    {"bijou/state/gateway", "bijou/state"},
		"only packages of state import stores":                                            {"bijou/agent", "bijou/state/store"},
		"the key-value layer is imported by state, the updater and what makes them only":  {"bijou/agent", "bijou/state/keyspace"},
		"pure packages import nothing of bijou":                                           {"bijou/state/charm", "bijou/state"},
		"state/access imports keys and the shape of secrets only":                         {"bijou/state/access", "bijou/state"},
		"of state's packages only state/charmsource imports net/http":                     {"bijou/state/osutil", "net/http"},
		"only operators' commands ask a store of charms":                                  {"bijou/agent", "bijou/state/charmsource"},
		"testscripts is imported by itself and by tests only":                             {"bijou/multicall", "bijou/testscripts/kit/applets"},
		"testscripts/kit/await and need import nothing of bijou":                          {"bijou/testscripts/kit/await", "bijou/testscripts/kit/need"},
		"go-plugin only in provision/plugin":                                              {"bijou/provision", "github.com/hashicorp/go-plugin"},
		"etcd's client only in state/store/etcd":                                          {"bijou/state", "go.etcd.io/etcd/client/v3"},
		"SQLite only in state/store/sqlite":                                               {"bijou/state", "modernc.org/sqlite"},
		"script only in multicall/author":                                                 {"bijou/multicall/juju", "rsc.io/script"},
		"testscript is for tests only":                                                    {"bijou/multicall/author", "github.com/rogpeppe/go-internal/testscript"},
		"renameio only in state/osutil":                                                   {"bijou/provision/nspawn", "github.com/google/renameio/v2"},
		"kong only where commands and flags are":                                          {"bijou/agent", "github.com/alecthomas/kong"},
		"leader and worker of an update never import one another":                         {"bijou/updater/worker", "bijou/updater/leader"},
		"what is decided of an update knows the records only":                             {"bijou/updater/decide", "bijou/updater/leader"},
	}
	for _, l := range laws() {
		edge, ok := wrong[l.what]
		if !ok {
			t.Errorf("no import is known that breaks %q", l.what)
			continue
		}
		if !l.breaks(pkg{ImportPath: edge[0]}, edge[1]) {
			t.Errorf("%s -> %s does not break %q", edge[0], edge[1], l.what)
		}
	}
}

// TestTopLevel checks that the root contains only the allowed names.
func TestTopLevel(t *testing.T) {
	allowed := strings.Fields(`main.go multicall agent state hookenv updater provision testscripts go.mod go.sum
		README.md LICENSE CHANGELOG.md HACKING.md SECURITY.md docs .ci .github .gitignore`)
	out, err := exec.Command("git", "-C", "../..", "ls-files").Output()
	if err != nil {
		t.Skipf("skip: git does not list this tree: %v", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		top, _, _ := strings.Cut(lines.Text(), "/")
		if !slices.Contains(allowed, top) {
			t.Errorf("%s: the root holds only %s", lines.Text(), strings.Join(allowed, " "))
		}
	}
}

// roles returns the parts that must not import each other.
func roles() []string {
	return []string{"bijou/agent", "bijou/provision", "bijou/updater", "bijou/multicall/author", "bijou/multicall/juju", "bijou/multicall/neco", "bijou/multicall/tour"}
}

// necoReadsUpdater reports whether neco's commands import the updater's records and what follows from them.
// They call the updater's daemons through an interface.
func necoReadsUpdater(p pkg, imp string) bool {
	return within(p.ImportPath, "bijou/multicall/neco") && slices.Contains([]string{"bijou/updater", "bijou/updater/decide", "bijou/updater/keys",
		"bijou/updater/record", "bijou/updater/release"}, imp)
}

// roleOf returns the role that a package belongs to, or "".
func roleOf(importPath string) string {
	for _, r := range roles() {
		if within(importPath, r) {
			return r
		}
	}
	return ""
}

// isLeaf reports whether a package is small and of general use.
func isLeaf(importPath string) bool {
	return slices.Contains([]string{"bijou/state/backoff", "bijou/state/carry", "bijou/state/childenv", "bijou/state/number", "bijou/state/osutil",
		"bijou/state/secret", "bijou/state/text"}, importPath)
}

// compositionRoot lists the role packages that multicall and the packages below it import in order to create
// their parts and connect them.
func compositionRoot() map[string][]string {
	return map[string][]string{
		"bijou/multicall": {"bijou/agent", "bijou/agent/do", "bijou/agent/hook", "bijou/agent/unitcall", "bijou/provision/local", "bijou/provision/local/process",
			"bijou/multicall/author", "bijou/multicall/author/proof", "bijou/multicall/juju", "bijou/multicall/neco", "bijou/multicall/tour", "bijou/multicall/tour/site"},
		"bijou/multicall/agents": {"bijou/agent", "bijou/provision", "bijou/provision/local", "bijou/provision/local/process", "bijou/provision/provider"},
		"bijou/multicall/daemon": {"bijou/agent/pulse", "bijou/provision/local/process"},
		"bijou/multicall/necodaemon": {"bijou/multicall/neco", "bijou/updater", "bijou/updater/host", "bijou/updater/leader",
			"bijou/updater/record", "bijou/updater/release", "bijou/updater/worker"},
		"bijou/multicall/providers": {"bijou/agent", "bijou/multicall/juju", "bijou/provision/local", "bijou/provision/local/process",
			"bijou/provision/nspawn", "bijou/provision/plugin", "bijou/provision/provider", "bijou/provision/ssh"},
	}
}

// isRoom reports whether a package is part of the composition root below multicall.
func isRoom(importPath string) bool {
	return importPath == "bijou/multicall/applet" || importPath == "bijou/multicall/install" ||
		compositionRoot()[importPath] != nil && importPath != "bijou/multicall"
}

func isRole(importPath string) bool { return roleOf(importPath) != "" }

// isForTests reports whether a package is for tests. A conformance suite may import the interface that it
// tests, no matter which package contains it.
func isForTests(p pkg) bool { return within(p.ImportPath, "bijou/testscripts") }

func ours(importPath string) bool { return within(importPath, "bijou") }

func within(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}

// onlyIn returns a law against an import of the library outside the given roots.
func onlyIn(library string, roots ...string) func(pkg, string) bool {
	return func(p pkg, imp string) bool {
		if !within(imp, library) {
			return false
		}
		return !slices.ContainsFunc(roots, func(r string) bool { return within(p.ImportPath, r) })
	}
}

// list runs `go list` on packages of this module.
func list(t *testing.T, patterns ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps"}, patterns...)...)
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// sources returns every non-test Go file of the module.
func sources(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, p := range list(t, "bijou/...") {
		for _, f := range p.GoFiles {
			files = append(files, filepath.Join(p.Dir, f))
		}
	}
	return files
}
