package proof_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hook"
	"bijou/hookenv/tools"
	"bijou/multicall/author/proof"
)

// sound returns the files of a charm without faults.
func sound() map[string]string {
	return map[string]string{
		"metadata.yaml": "name: blog\nsummary: A blog\ndescription: A blog.\nhook-dialect: modern\nrequires:\n  db: mysql\nstorage:\n  data:\n    type: filesystem\n",
		"config.yaml":   "options:\n  port:\n    type: int\n    default: 80\n    description: Where it listens.\n",
		"actions.yaml":  "backup:\n  description: Copy all.\n  params:\n    keep:\n      type: integer\n      default: 3\n",
		"hooks/install": "#!/bin/bash\nset -eu\nmy-own-helper --any\nfor id in $(relation-ids db); do relation-set -r \"$id\" --format=json x=\"$(config-get port)\"; done\n" +
			"cat <<END\nrelation-gte --none\nEND\n# status-st active\njuju-log -l \"$LEVEL\" --help\n",
		"hooks/db-relation-changed":   "#!/bin/sh\nrelation-get - \"$JUJU_REMOTE_UNIT\"\n",
		"hooks/data-storage-attached": "#!/bin/sh\n",
		"hooks/helper":                "#!/bin/sh\n",
		"actions/backup":              "#!/bin/sh\naction-set done=yes\n",
		"lib/notes.txt":               "relation-gte --none\n",
	}
}

// writeCharm writes the files. Hooks and actions are executable. A text of the form "-> FILE" makes a
// symlink.
func writeCharm(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if folder := path.Dir(name); folder == "hooks" || folder == "actions" {
			mode = 0o755
		}
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if target, isLink := strings.CutPrefix(text, "-> "); err == nil && isLink {
			err = os.Symlink(target, file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(text), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func rules() proof.Rules {
	var names []string
	for _, tool := range tools.All() {
		names = append(names, tool.Name)
	}
	return proof.Rules{Tools: names, CheckCall: tools.CheckCall, Hooks: hook.Names}
}

func check(t *testing.T, dir string) (lines []string) {
	t.Helper()
	found, err := proof.Check(dir, rules())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		lines = append(lines, fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Level, f.Message))
	}
	return lines
}

func TestSoundCharm(t *testing.T) {
	files := sound()
	files["hooks/stop"] = "#!/usr/bin/env python3\nprint('bye')\n"
	if diff := cmp.Diff([]string(nil), check(t, writeCharm(t, files))); diff != "" {
		t.Error(diff)
	}
}

// TestBreakages breaks the sound charm in each way that proof must report. An endless loop and a
// setting that the other side never makes show only when the charm runs, so the suite of charm test has
// those.
func TestBreakages(t *testing.T) {
	const metadata = "name: blog\nsummary: A blog\ndescription: A blog.\nhook-dialect: modern\nrequires:\n  db: mysql\nstorage:\n  data:\n    type: filesystem\n"
	tests := []struct {
		name, file, text string // a text of "" removes the file
		want             string // the expected line, or its beginning before "..."
	}{
		{"a misspelt key of the metadata", "metadata.yaml", strings.Replace(metadata, "requires", "requries", 1), `metadata.yaml:5: warning: unknown key "requries" is ignored; did you mean "requires"?`},
		{"a misspelt key of a relation", "metadata.yaml", strings.Replace(metadata, "db: mysql", "db: {interface: mysql, scpoe: container}", 1), `metadata.yaml:6: warning: unknown key "scpoe" is ignored; did you mean "scope"?`},
		{"a key that is there twice", "metadata.yaml", metadata + "summary: Other\n", `metadata.yaml:10: warning: key "summary" appears twice; only the last one counts`},
		{"a tab", "metadata.yaml", metadata + "provides:\n\tweb: http\n", `metadata.yaml:11: error: found character that cannot start any token`},
		{"a name that no charm has", "metadata.yaml", strings.Replace(metadata, "blog", "My_Blog", 1), `metadata.yaml:1: error: invalid charm name "My_Blog"...`},
		{"an interface that there cannot be", "metadata.yaml", strings.Replace(metadata, "mysql", "my sql", 1), `metadata.yaml:6: error: relation "db": invalid interface name "my sql"...`},
		{"a subordinate of nobody", "metadata.yaml", metadata + "subordinate: true\n", `metadata.yaml:1: error: subordinate charm "blog" must require a relation with scope container`},
		{"what bijou does not have", "metadata.yaml", metadata + "assumes:\n  - juju >= 99\n", `metadata.yaml:0: error: the charm requires a feature that bijou does not have: juju >= 99`},
		{"Kubernetes", "metadata.yaml", metadata + "containers: {app: {}}\n", `metadata.yaml:0: error: the charm is for Kubernetes...`},
		{"no description", "metadata.yaml", strings.Replace(metadata, "description: A blog.\n", "", 1), `metadata.yaml:0: warning: Juju refuses a charm that has no summary or no description`},
		{"a dialect that nobody chose", "metadata.yaml", strings.Replace(metadata, "hook-dialect: modern\n", "", 1), `metadata.yaml:0: info: the hooks of this charm use the modern dialect, because its metadata has storage...`},
		{"a misspelt key of the options", "config.yaml", "optoins: {}\n", `config.yaml:1: warning: unknown key "optoins" is ignored; did you mean "options"?`},
		{"a misspelt key of an option", "config.yaml", "options:\n  port:\n    type: int\n    defualt: 80\n", `config.yaml:4: warning: unknown key "defualt" is ignored; did you mean "default"?`},
		{"a default of another type", "config.yaml", "options:\n  port:\n    type: int\n    default: many\n", `config.yaml:2: error: default of option "port": "many" is not an int`},
		{"a type that there is not", "config.yaml", "options:\n  port:\n    type: integer\n", `config.yaml:2: error: option "port": unknown type "integer"...`},
		{"a misspelt keyword of an action", "actions.yaml", "backup:\n  params:\n    keep:\n      type: integer\n      minimun: 3\n", `actions.yaml:5: warning: unknown key "minimun" is ignored; did you mean "minimum"?`},
		{"a parameter's default of another type", "actions.yaml", "backup:\n  params:\n    keep: {type: integer, default: many}\n", `actions.yaml:1: warning: action "backup" does not accept its own default values: "keep": "many" is not of type integer`},
		{"an action without a file", "actions.yaml", "backup: {}\nrestore: {}\n", `actions.yaml:2: warning: action "restore" fails: there is no file with that name in actions/`},
		{"a file of no action", "actions/bakcup", "#!/bin/sh\n", `actions/bakcup:0: warning: this file never runs: no hook or action of the charm has this name; did you mean "backup"?`},
		{"a misspelt hook", "hooks/db-relation-chagned", "#!/bin/sh\n", `hooks/db-relation-chagned:0: warning: this file never runs: ...`},
		{"a misspelt event", "hooks/confg-changed", "#!/bin/sh\n", `hooks/confg-changed:0: warning: this file never runs: no hook or action of the charm has this name; did you mean "config-changed"?`},
		{"a hook of a relation that is not declared", "hooks/website-relation-joined", "#!/bin/sh\n", `hooks/website-relation-joined:0: warning: this file never runs: ...`},
		{"an interpreter that is not there", "hooks/start", "#!/usr/bin/env pyhton3\n", `hooks/start:1: warning: the interpreter "pyhton3" is not on this host; did you mean "python3"?`},
		{"a path of an interpreter that is not there", "hooks/start", "#!/bin/bahs\n", `hooks/start:1: warning: the interpreter "/bin/bahs" is not on this host; did you mean "/bin/bash"?`},
		{"CRLF", "hooks/start", "#!/bin/bash\r\necho\r\n", `hooks/start:1: error: the lines end in CRLF, so the system looks for an interpreter "/bin/bash\r": save the file with LF only`},
		{"CRLF further below", "hooks/start", "#!/bin/bash\necho\nls\r\n", `hooks/start:3: warning: the line ends in CRLF...`},
		{"no interpreter", "hooks/start", "echo hello\n", `hooks/start:1: warning: this file does not begin with #!...`},
		{"a link that leads nowhere", "hooks/start", "-> nothing", `hooks/start:0: error: this is neither a file nor a symlink to a file in the charm, so it cannot run`},
		{"a shell's syntax", "hooks/start", "#!/bin/bash\nif true; then\n  echo\n", `hooks/start:2: warning: a shell cannot parse this script: ...`},
		{"a tool that there is not", "hooks/start", "#!/bin/bash\nset -e\nhost=$(relation-gte host)\n", `hooks/start:3: warning: there is no tool "relation-gte"; did you mean "relation-get"?`},
		{"an option that a tool does not have", "hooks/start", "#!/bin/bash\nrelation-get --formt json - \"$UNIT\"\n", `hooks/start:2: warning: relation-get: option provided but not defined: --formt`},
		{"a status that there is not", "hooks/start", "#!/bin/bash\nstatus-set 'ready' \"$MESSAGE\"\n", `hooks/start:2: warning: status-set: invalid status "ready"...`},
		{"a port before its protocol", "hooks/start", "#!/bin/bash\nopen-port http/80\n", `hooks/start:2: warning: open-port: invalid port "http": expected PORT or FROM-TO, and then the protocol, such as 80/tcp`},
		{"an option that is not declared", "hooks/start", "#!/bin/bash\nx=$(config-get --format json prot)\n", `hooks/start:2: warning: config-get: the charm declares no option "prot"; did you mean "port"?`},
		{"a resource that is not declared", "hooks/start", "#!/bin/bash\ntar xf \"$(resource-get site)\"\n", `hooks/start:2: warning: resource-get: the charm declares no resource "site"`},
		{"a storage that is not declared", "hooks/start", "#!/bin/bash\nstorage-add date=2\n", `hooks/start:2: warning: storage-add: the charm declares no storage "date"; did you mean "data"?`},
		{"a hook's name as in Python", "hooks/db_relation_changed", "#!/bin/sh\n", `hooks/db_relation_changed:0: warning: this file never runs: no hook or action of the charm has this name; did you mean "db-relation-changed"?`},
		{"a relation that is not declared", "hooks/start", "#!/bin/bash\nrelation-ids database\n", `hooks/start:2: warning: relation-ids: the charm declares no relation "database"`},
		{"a setting that no unit has by itself", "hooks/db-relation-changed", "#!/bin/sh\nrelation-get private_address\n", `hooks/db-relation-changed:2: warning: relation-get: no unit gets a setting "private_address" automatically; did you mean "private-address"?`},
		{"relation-set without a relation", "hooks/start", "#!/bin/bash\nrelation-set host=\"$H\"\n", `hooks/start:2: warning: relation-set: the hook start belongs to no relation: name one with -r`},
		{"relation-get without a relation", "hooks/start", "#!/bin/bash\nset -e\nrelation-get host\n", `hooks/start:3: warning: relation-get: the hook start belongs to no relation: name one with -r`},
		{"a file to read that is missing", "hooks/start", "#!/bin/bash\n. lib/common.sh\n", `hooks/start:2: warning: this script sources "lib/common.sh", which the charm does not have`},
		{"a file to read beside the hook", "hooks/start", "#!/bin/bash\nsource \"$(dirname \"$0\")/common\"\n", `hooks/start:2: warning: this script sources "hooks/common", which the charm does not have`},
		{"a value that an option does not have", "hooks/start", "#!/bin/bash\nrelation-get --format jsno\n", `hooks/start:2: warning: ...`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := sound()
			files["hooks/leader-elected"] = "#!/bin/sh\n# Runs after start, and calls nothing.\n"
			files[tt.file] = tt.text
			prefix, _, isOpen := strings.Cut(tt.want, "...")
			lines := check(t, writeCharm(t, files))
			for _, line := range lines {
				if line == tt.want || isOpen && strings.HasPrefix(line, prefix) {
					return
				}
			}
			t.Errorf("it finds\n%s\nand not\n%s", strings.Join(lines, "\n"), tt.want)
		})
	}
}

// TestFixKeepsRivals checks that no mend replaces a hook or a key that is there, also if a similar name is known.
func TestFixKeepsRivals(t *testing.T) {
	files := sound()
	files["metadata.yaml"] = "name: blog\nsummary: A blog\ndescription: A blog.\nhook-dialect: modern\n" +
		"requires: {db: {interface: mysql}, db2: {interface: mysql}}\n"
	files["charmcraft.yaml"] = "type: charm\nbases: []\nbasess: []\n"
	files["hooks/db-relation-changed"] = "#!/bin/sh\necho right\n"
	files["hooks/db-relation-chnged"] = "#!/bin/sh\necho wrong\n"
	files["hooks/db-relation-jioned"] = "#!/bin/sh\necho one\n"
	files["hooks/db-relation-joinde"] = "#!/bin/sh\necho two\n"
	dir := writeCharm(t, files)
	if _, err := proof.Fix(dir, rules()); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"charmcraft.yaml", "hooks/db-relation-changed", "hooks/db-relation-chnged", "hooks/db-relation-jioned", "hooks/db-relation-joinde"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != files[name] {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestFix fixes all faults that have a single fix, round by round: a hook's name is known only after
// the key is correct.
func TestFix(t *testing.T) {
	files := sound()
	files["metadata.yaml"] = "\"naem\": blog # its name\nsummary: A blog\ndescription: A blog.\nhook-dialect: modern\nrequries: {db: {interface: mysql, scpoe: global}}\n" +
		"storage:\n  data: {type: filesystem, mulitple: {range: 1-}}\n"
	files["hooks/db-relation-chagned"] = files["hooks/db-relation-changed"]
	delete(files, "hooks/db-relation-changed")
	files["hooks/start"] = "#!/bin/bash\r\necho x\r\n"
	files["hooks/stop"] = "-> ../src/stop"
	files["src/stop"] = "#!/bin/bash\n"
	files["hooks/confg-changed"] = "#!/bin/sh\n"
	files["hooks/config-chnged"] = "#!/bin/sh\n"
	files["actions.yaml"] = "backup:\n  description: Copy all.\n  parmas: {}\n  params: {}\n"
	dir := writeCharm(t, files)

	fixed, err := proof.Fix(dir, rules())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fixed {
		got = append(got, fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Level, f.Message))
	}

	want := []string{
		`metadata.yaml:7: fixed: key "mulitple" is now "multiple"`,
		`metadata.yaml:5: fixed: key "requries" is now "requires"`,
		`metadata.yaml:1: fixed: key "naem" is now "name"`,
		`metadata.yaml:5: fixed: key "scpoe" is now "scope"`,
		`hooks/start:0: fixed: the lines now end in LF only`,
		`hooks/db-relation-chagned:0: fixed: the file is now called "hooks/db-relation-changed"`,
		`hooks/stop:0: fixed: the file is now executable`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	wantMetadata := strings.NewReplacer("naem", "name", "requries", "requires", "scpoe", "scope", "mulitple", "multiple").
		Replace(files["metadata.yaml"])
	for file, text := range map[string]string{"metadata.yaml": wantMetadata, "hooks/start": "#!/bin/bash\necho x\n",
		"hooks/db-relation-changed": files["hooks/db-relation-chagned"], "actions.yaml": files["actions.yaml"]} {
		data, _ := os.ReadFile(filepath.Join(dir, file))
		if diff := cmp.Diff(text, string(data)); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}

	if again, err := proof.Fix(dir, rules()); len(again) > 0 || err != nil {
		t.Errorf("fixed twice: %v, %v", again, err)
	}
}

// TestOtherRelation checks that proof neither renames hooks of a relation that the charm no longer declares, nor
// suggests a different relation for them. A relation with nearly the same name is a suggestion, but is not certain.
func TestOtherRelation(t *testing.T) {
	tests := []struct {
		declared, file string
		suggestion     string // "" for none
		fixed          bool
	}{
		{"web", "db-relation-changed", "", false},
		{"web", "db-relation-chagned", "", false},
		{"dba", "db-relation-changed", "", false},
		{"http", "https-relation-changed", "http-relation-changed", false},
		{"http", "htpt-relation-changed", "http-relation-changed", false},
		{"http", "http-relation-chnaged", "http-relation-changed", true},
		{"http", "http-realtion-changed", "http-relation-changed", true},
		{"x-y", "x-y-relation-chnaged", "x-y-relation-changed", true},
		{"db", "db-2-relation-changed", "", false},
		{"x-y", "x-z-relation-changed", "x-y-relation-changed", false},
	}
	for _, tt := range tests {
		t.Run(tt.file+" of "+tt.declared, func(t *testing.T) {
			file := "hooks/" + tt.file
			dir := writeCharm(t, map[string]string{
				"metadata.yaml": "name: blog\nsummary: A blog\ndescription: A blog.\nhook-dialect: modern\nprovides:\n  " + tt.declared + ": http\n",
				"hooks/install": "#!/bin/sh\n",
				file:            "#!/bin/sh\n",
			})

			want := file + ":0: warning: this file never runs: no hook or action of the charm has this name"
			if tt.suggestion != "" {
				want += fmt.Sprintf("; did you mean %q?", tt.suggestion)
			}
			if diff := cmp.Diff([]string{want}, check(t, dir)); diff != "" {
				t.Error(diff)
			}

			fixed, err := proof.Fix(dir, rules())
			if err != nil || len(fixed) > 0 != tt.fixed {
				t.Errorf("fixed %v, %v; want a change: %t", fixed, err, tt.fixed)
			}
		})
	}
}

// TestPython needs Python, because its parser checks the files. Without it, proof does not check them.
func TestPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}

	const begin = "#!/usr/bin/env python3\n"
	tests := []struct{ name, file, text, want string }{
		{"syntax of a hook", "hooks/start", begin + "def f(:\n", `hooks/start:2: error: Python cannot parse this file: ...`},
		{"syntax of a module", "src/blog.py", "\nif True\n", `src/blog.py:2: warning: Python cannot parse this file: ...`},
		{"an import", "hooks/start", begin + "import no_such_one\n", `hooks/start:2: warning: neither the charm nor this host has a Python module "no_such_one"`},
		{"an import of many charms", "hooks/start", begin + "import charmhelpers\n", `hooks/start:2: warning: neither the charm nor this host has a Python module "charmhelpers"`},
		{"a call with a list", "hooks/start", begin + "run(['status-set', 'ready', m])\n", `hooks/start:2: warning: status-set: invalid status "ready"...`},
		{"a call with words", "hooks/start", begin + "call('config-get', 'prot')\n", `hooks/start:2: warning: config-get: the charm declares no option "prot"; ...`},
		{"no relation", "hooks/start", begin + "run(['relation-set', 'host=' + h])\n", `hooks/start:2: warning: relation-set: the hook start belongs to no relation: ...`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := sound()
			files[tt.file] = tt.text
			prefix, _, isOpen := strings.Cut(tt.want, "...")
			lines := check(t, writeCharm(t, files))
			if len(lines) != 1 || !strings.HasPrefix(lines[0], prefix) || !isOpen && lines[0] != tt.want {
				t.Errorf("it finds\n%s\nand not\n%s", strings.Join(lines, "\n"), tt.want)
			}
		})
	}
}

// TestDispatch checks which calls of relation tools proof reports in a program that runs for all hooks: only those that
// no hook of a relation makes.
func TestDispatch(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}

	const helper = "def call(tool, *args):\n    subprocess.check_call([tool, *args])\n"
	tests := []struct {
		name, helper, body, hooks string
		reported                  bool
	}{
		{"a hook without a relation", helper, `call("relation-set", "x=" + y)`, `"start": f`, true},
		{"two hooks without a relation", helper, `call("relation-get", "x")`, `"start": f, "config-changed": f`, true},
		{"without a function of the charm", "", `subprocess.check_call(["relation-set", "x=1"])`, `"start": f`, true},
		{"a hook of a relation", helper, `call("relation-set", "x=1")`, `"db-relation-changed": f`, false},
		{"a hook of a relation as well", helper, `call("relation-set", "x=1")`, `"start": f, "db-relation-changed": f`, false},
		{"a function that is called as well", helper, `call("relation-set", "x=1")`, `"start": f, "stop": lambda: f()`, false},
		{"a relation that is named", helper, `call("relation-set", "-r", id, "x=1")`, `"start": f`, false},
		{"a relation of the environment", helper, `os.environ.get("JUJU_RELATION_ID") and call("relation-set", "x=1")`, `"start": f`, false},
		{"a function that names the relation", "def call(*args):\n    run([*args, '-r', 'db:1'])\n", `call("relation-set", "x=1")`, `"start": f`, false},
		{"no table of hooks", helper, `call("relation-set", "x=1")`, ``, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"metadata.yaml": sound()["metadata.yaml"]}
			begin := "#!/usr/bin/env python3\nimport os, subprocess\n" + tt.helper
			files["dispatch"] = begin + "def f():\n    " + tt.body + "\nHOOKS = {" + tt.hooks + "}\n"

			var want []string
			if tt.reported {
				tool := regexp.MustCompile("relation-[sg]et").FindString(tt.body)
				want = []string{fmt.Sprintf("dispatch:%d: warning: %s: the hook start belongs to no relation: name one with -r",
					2+strings.Count(begin, "\n"), tool)}
			}
			if diff := cmp.Diff(want, check(t, writeCharm(t, files))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTables checks which keys of a program's table of hooks proof reports: those that misspell a hook or an action.
func TestTables(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}

	tests := []struct{ name, table, want string }{
		{"a misspelt hook of a relation", `"start": f, "db-relation-chnaged": f`, `"db-relation-chnaged"; did you mean "db-relation-changed"?`},
		{"a misspelt hook", `"install": f, "strat": lambda: f()`, `"strat"; did you mean "start"?`},
		{"a misspelt action", `"install": f, "bakcup": f`, `"bakcup"; did you mean "backup"?`},
		{"a relation that is not declared", `"start": f, "web-relation-changed": f`, `"web-relation-changed"`},
		{"all right", `"start": f, "backup": f, "data-storage-attached": f, "default": f`, ""},
		{"not a table of hooks", `"strat": f, "instal": f`, ""},
		{"a dictionary of data", `"start": 1, "strat": 2`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"metadata.yaml": sound()["metadata.yaml"], "actions.yaml": sound()["actions.yaml"]}
			files["dispatch"] = "#!/usr/bin/env python3\nHOOKS = {" + tt.table + "}\n"

			var want []string
			if tt.want != "" {
				want = []string{"dispatch:2: warning: no hook or action of the charm has the name " + tt.want}
			}
			if diff := cmp.Diff(want, check(t, writeCharm(t, files))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPackages checks which modules of a source tree proof reports: those that no directory in the program's path has,
// once each, with the command that adds them.
func TestPackages(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}

	const missing = `src/charm.py:2: info: neither the charm nor this host has a Python module "no_such_one", and juju deploy builds nothing; ` +
		"to add the packages to the charm: python3 -m pip install --target venv -r requirements.txt"
	const built = `dispatch:2: info: neither the charm nor this host has a Python module "no_such_one": the build of the charm must add it`
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"named in requirements.txt", "requirements.txt", "no_such_one>=2\n", []string{missing}},
		{"a longer name", "requirements.txt", "laptop-no-such-one-x\n", []string{missing}},
		{"a directory of packages", "venv/no_such_one/model.py", "", nil},
		{"a virtual environment", "venv/lib/python3.11/site-packages/no_such_one.py", "", nil},
		{"a virtual environment without a program that uses it", "dispatch", "#!/usr/bin/env python3\nimport no_such_one\n", []string{built}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{
				"metadata.yaml":    sound()["metadata.yaml"],
				"requirements.txt": "ops\n",
				"src/charm.py":     "#!/usr/bin/env python3\nimport no_such_one\n",
				"src/other.py":     "import no_such_one\n",
			}
			if tt.file == "dispatch" {
				files["venv/lib/python3.11/site-packages/no_such_one.py"] = ""
			}
			files[tt.file] = tt.text
			if diff := cmp.Diff(tt.want, check(t, writeCharm(t, files))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReads checks which settings proof knows that a charm's hooks read, in both languages.
func TestReads(t *testing.T) {
	files := sound()
	files["hooks/install"] = "#!/bin/sh\nrelation-get -r db:1 named\nrelation-get \"$key\"\n"
	files["lib/all"] = "#!/bin/sh\nset -e\nx=$(relation-get --format json host - )\nrelation-get port\n"
	files["hooks/db-relation-changed"] = "-> ../lib/all"
	files["hooks/db-relation-joined"] = "-> ../lib/all"
	if _, err := exec.LookPath("python3"); err == nil {
		files["dispatch"] = "#!/usr/bin/env python3\nimport os\ndef f():\n    if os.environ['JUJU_REMOTE_UNIT']: ask('relation-get', 'user')\nHOOKS = {'db-relation-changed': f}\n"
	}

	reads, err := proof.Reads(writeCharm(t, files), rules())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, read := range reads {
		got = append(got, fmt.Sprintf("%s:%d %s %q", read.File, read.Line, read.Key, read.Hooks))
	}
	want := []string{`hooks/db-relation-changed:4 port ["db-relation-changed" "db-relation-joined"]`}
	if files["dispatch"] != "" {
		want = append([]string{`dispatch:4 user ["db-relation-changed"]`}, want...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDoubt checks that proof does not report code that can work.
func TestDoubt(t *testing.T) {
	tests := []struct{ name, file, text string }{
		{"a status in a variable", "hooks/start", "#!/bin/bash\nstatus-set $S ready\nstatus-set \"$S\" \"x\"\n"},
		{"a function of a tool's name", "hooks/start", "#!/bin/bash\nstatus-set() { echo \"$@\"; }\nstatus-set ready\n"},
		{"options in a variable", "hooks/start", "#!/bin/bash\nrelation-set $OPTIONS host=x\nrelation-set \"$@\"\n"},
		{"a hook that asks where it is", "hooks/start", "#!/bin/bash\n[ -z \"$JUJU_RELATION\" ] || relation-set host=x\n"},
		{"a hook that a relation's hook calls", "hooks/start", "#!/bin/bash\nrelation-set host=x\n# hooks/db-relation-changed: exec hooks/stop\n"},
		{"a link of a relation's hook", "hooks/start", "-> db-relation-changed"},
		{"a file that is looked for", "hooks/start", "#!/bin/bash\n[ ! -e lib/x.sh ] || . lib/x.sh\n"},
		{"a file of the host", "hooks/start", "#!/bin/bash\n. /etc/none\n. \"$HERE/none\"\n"},
		{"a directory that is changed", "hooks/start", "#!/bin/bash\ncd /srv\n. ./none\n"},
		{"what a failure of an import catches", "hooks/start", "#!/usr/bin/env python3\ntry:\n    import none_such\nexcept ImportError:\n    pass\ndef f():\n    import none_such\n"},
		{"a module of the charm", "hooks/start", "#!/usr/bin/env python3\nimport helper, json, os.path\nfrom . import x\n"},
		{"a list of tools", "hooks/start", "#!/usr/bin/env python3\nTOOLS = ['status-set', 'juju-log']\n"},
		{"a key that is nearly a tool", "hooks/start", "#!/usr/bin/env python3\nx.get('secret-key')\n"},
		{"Python 2", "hooks/start", "#!/usr/bin/python2\nprint 1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := sound()
			files[tt.file] = tt.text
			if tt.name == "a hook that a relation's hook calls" {
				files["hooks/db-relation-changed"] = "#!/bin/sh\nexec hooks/start\n"
			}

			for _, line := range check(t, writeCharm(t, files)) {
				if !strings.Contains(line, "the interpreter") {
					t.Error(line)
				}
			}
		})
	}
}

func TestNoCharm(t *testing.T) {
	if got := check(t, t.TempDir()); len(got) != 1 || !strings.Contains(got[0], "this is not a charm") {
		t.Errorf("%q", got)
	}
}

func TestNoHooks(t *testing.T) {
	got := check(t, writeCharm(t, map[string]string{"metadata.yaml": sound()["metadata.yaml"]}))
	if len(got) != 1 || !strings.Contains(got[0], "no hooks and no dispatch") {
		t.Errorf("%q", got)
	}
}

func TestReactiveSources(t *testing.T) {
	got := check(t, writeCharm(t, map[string]string{
		"metadata.yaml":    sound()["metadata.yaml"],
		"layer.yaml":       "includes: ['layer:basic']\n",
		"reactive/blog.py": "",
	}))
	if len(got) != 1 || !strings.HasPrefix(got[0], "layer.yaml:0: warning: these are the sources of a reactive charm") {
		t.Errorf("%q", got)
	}
}

// TestNotExecutable checks programs that deploy makes executable, even behind a symlink, and that a
// fault in one is reported once.
func TestNotExecutable(t *testing.T) {
	files := sound()
	files["src/charm.py"] = "#!/usr/bin/env python3\n"
	files["lib/all"] = "#!/bin/sh\nrelation-gte host\n"
	files["hooks/start"] = "-> ../lib/all"
	files["hooks/stop"] = "-> ../lib/all"
	dir := writeCharm(t, files)
	if err := os.Chmod(filepath.Join(dir, "hooks/install"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{`hooks/start:2: warning: there is no tool "relation-gte"; did you mean "relation-get"?`}
	if diff := cmp.Diff(want, check(t, dir)); diff != "" {
		t.Error(diff)
	}
}
