package script

import (
	"errors"
	"os/exec"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/kit/need"
)

// findPython returns a python3 that can import the module. Debian's own comes first, since Debian's
// packages of modules are for it and hooks with #!/usr/bin/python3 get it.
func findPython(module string) (path string, ok bool) {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python, true
		}
	}
	return "", false
}

// havePython evaluates the condition [python:MODULE] in scripts. It prints one line about a missing module,
// which is an error if BIJOU_TEST_REQUIRE names the module.
func havePython(module string) (bool, error) {
	if _, ok := findPython(module); ok {
		return true, nil
	}
	return false, need.Lacks(module, "no python3 here can import "+module)
}

// setPython is the command python MODULE: it sets PYTHON to a python3 that can import the module.
func setPython(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: python MODULE")
	}
	path, ok := findPython(args[0])
	if !ok {
		ts.Check(errors.New("no python3 here can import " + args[0]))
	}
	ts.Setenv("PYTHON", path)
}
