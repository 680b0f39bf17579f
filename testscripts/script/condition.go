package script

import (
	"fmt"
	"os/exec"
	"strings"

	"bijou/testscripts/etcdtest"
	"bijou/testscripts/need"
)

// answerCondition answers [have:PROG] and [python:MODULE] in scripts. What is missing
// is told in one line, and is an error if BIJOU_TEST_REQUIRE names it.
func answerCondition(cond string) (bool, error) {
	if module, ok := strings.CutPrefix(cond, "python:"); ok {
		return havePython(module)
	}
	prog, ok := strings.CutPrefix(cond, "have:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	_, err := exec.LookPath(prog)
	if prog == "etcd" {
		_, err = etcdtest.Binary()
	}
	if err == nil {
		return true, nil
	}
	return false, need.Lacks(prog, prog+" is not installed")
}
