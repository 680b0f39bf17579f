package script

import (
	"fmt"
	"os/exec"
	"strings"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// answerCondition evaluates the conditions [have:PROG], [python:MODULE], [isolation] and [hosts] in scripts.
// It prints one line about a missing need, and returns an error if BIJOU_TEST_REQUIRE names it.
func answerCondition(cond string) (bool, error) {
	if module, ok := strings.CutPrefix(cond, "python:"); ok {
		return havePython(module)
	}
	if cond == "isolation" {
		if out, err := exec.Command("unshare", "--map-root-user", "--mount", "true").CombinedOutput(); err != nil {
			return false, need.Lacks(cond, "no user may make namespaces here: "+string(out))
		}
		return true, nil
	}
	if cond == "hosts" {
		if out, err := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", tryHost).CombinedOutput(); err != nil {
			return false, need.Lacks(cond, "nobody may make hosts of namespaces here: "+string(out))
		}
		return true, nil
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

// tryHost tries once whether the steps of docs/boot-servers/hosts work, in namespaces that end with the
// attempt.
const tryHost = `set -e
here=$(mktemp -d)
mkdir "$here/written" "$here/work" "$here/disk"
trap 'umount -l "$here/disk"; rm -rf "$here"' EXIT
mount -t overlay try -o "lowerdir=/,upperdir=$here/written,workdir=$here/work" "$here/disk"
ip link add try type bridge
ip netns add try
ip netns del try`
