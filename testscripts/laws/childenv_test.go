package laws

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bijou/state/childenv"
)

// TestVariablesOfChildren checks that state/childenv decides, for each variable that the program reads
// as its own setting, which child processes get it.
func TestVariablesOfChildren(t *testing.T) {
	reads := regexp.MustCompile(`(?:Getenv\(|LookupEnv\(|env:)"((?:BIJOU|JUJU|NECO)_[A-Z0-9_]+)"`)
	found := map[string]bool{}
	for _, file := range sources(t) {
		if strings.Contains(file, "/testscripts/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, read := range reads.FindAllStringSubmatch(string(text), -1) {
			name := read[1]
			found[name] = true
			if !childenv.IsKnown(name) {
				t.Errorf("%s reads %s: give it a line in state/childenv, which says what children get it", file, name)
			}
		}
	}
	for _, name := range []string{"BIJOU_METRICS", "BIJOU_DEBUG", "BIJOU_HOME", "NECO_STATE", "JUJU_ENV"} {
		if !found[name] {
			t.Errorf("no file is seen to read %s: the rule looks past what it is about", name)
		}
	}
}

// TestEnvironIsNotHandedOn checks that all code that starts a process uses state/childenv for the environment
// of the process.
func TestEnvironIsNotHandedOn(t *testing.T) {
	may := map[string]string{
		"multicall/agents/handover.go":            "the daemon goes on as another binary",
		"multicall/author/isolation/isolation.go": "the process goes on as the same binary, isolated",
		"multicall/necodaemon/worker.go":          "the daemon goes on as another binary",
		"multicall/juju.go":                       "juju do runs the operator's own shell",
		"provision/plugin/server.go":              "the provider looks for the handshake's variables, to remove them",
	}
	handsOn := regexp.MustCompile(`(childenv\.New\()?os\.Environ\(\)`)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources(t) {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "testscripts/") || may[name] != "" {
			continue
		}
		for _, at := range handsOn.FindAllStringSubmatch(string(text), -1) {
			if at[1] == "" {
				t.Errorf("%s hands all of this process's environment on: childenv.New says what a child gets", name)
			}
		}
	}
}
