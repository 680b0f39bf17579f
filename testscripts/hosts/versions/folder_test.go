package versions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
)

// otherFolders is the last binary that keeps the directories of units at units/SERVICE-N.
const otherFolders = "9138b84f34be35570f045053a5a2a0008b5aa135"

// TestFolder switches a unit to this binary, which keeps the unit's directory in a different place, then back
// and forward again. The unit's hooks have recorded the path of the directory, and its daemon runs from
// there. The recorded path must still work, and the daemon must survive. Each hook must get the path that
// belongs to the binary that runs it.
func TestFolder(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	Need(t)
	former, current := At(t, otherFolders), Current(t)
	w := newWorld(t, former, "")
	w.charm = filepath.Join(w.dir, "places")
	w.writeCharm(map[string]string{
		"metadata.yaml": "name: places\nsummary: s\n",
		"config.yaml":   "options: {turn: {type: int}}\n",
		"daemon":        "#!/bin/sh\ntouch \"$1/alive\"; while [ -e \"$1/alive\" ]; do sleep 0.1; done\n",
		"hooks/install": "#!/bin/sh\necho \"$CHARM_DIR\" >../where\nsetsid \"$CHARM_DIR/daemon\" \"$JUJU_UNIT_DIR\" </dev/null >/dev/null 2>&1 &\necho $! >../daemon.pid\n",
		"hooks/config-changed": "#!/bin/sh -e\nread -r was <../where\ncmp \"$was/metadata.yaml\" \"$CHARM_DIR/metadata.yaml\"\nkill -0 $(cat \"$was/../daemon.pid\")\n" +
			"[ -e \"$was/../alive\" ]\necho \"$(config-get turn) $CHARM_DIR\" >>../turns\n",
	})
	w.juju(former, "deploy", w.charm)
	old, place := w.machine(0, "units", "places-0"), w.machine(0, "agents", "unit-places-0")
	turn := func(number, folder string) {
		t.Helper()
		w.juju(w.current, "set", "places", "turn="+number)
		w.eventually("turn "+number, func() string {
			turns, _ := os.ReadFile(filepath.Join(old, "turns"))
			if want := number + " " + folder + "/charm\n"; !strings.HasSuffix(string(turns), want) {
				return "hooks were told: " + string(turns)
			}
			return ""
		})
	}
	turn("1", old)
	for i, to := range []string{current, former, current} {
		w.juju(to, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
		w.current = to
		turn(string(rune('2'+i)), map[bool]string{true: place, false: old}[to == current])
		if info, err := os.Lstat(old); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the old path is no link: %v", err)
		}
	}
	w.juju(current, "destroy-service", "places")
	w.eventually("nothing is left", func() string {
		for _, path := range []string{old, place} {
			if _, err := os.Lstat(path); err == nil {
				return path + " is there"
			}
		}
		return ""
	})
}
