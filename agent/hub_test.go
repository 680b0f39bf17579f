package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// TestHub runs one hook of a hub that writes in all of the hub's relations. All writes must be one
// transaction, or the hook must fail with the reason.
func TestHub(t *testing.T) {
	need.Whole(t)
	for _, tc := range []struct {
		relations int
		body      string
		failure   string
	}{
		{250, "a=1", ""},
		{40, "a=$(head -c 60000 /dev/zero | tr '\\0' x)$r", ""}, // 2.4 MB in all
		{260, "a=1", "the hook changed settings in 260 places at once, but a transaction can hold only about 250: change fewer in one hook"},
	} {
		t.Run(fmt.Sprint(tc.relations), func(t *testing.T) {
			r := newRig(t, statetest.New(t))
			r.manual()
			body, open := r.gate("write")
			written := filepath.Join(t.TempDir(), "written")
			hub := r.recorder(statetest.Meta("hub", "provides:\n  link: wire\n"), hooks(), map[string]string{
				"config-changed": strings.Replace(body, "|| exit 7", "|| exit 0", 1) + `; for r in $(relation-ids link); do relation-set -r $r "` + tc.body + `"; echo $r >> ` + written + `; done; open-port 80`,
			})
			statetest.AddService(t, r.st, hub, 1)
			leaf := statetest.AddCharm(t, r.st, statetest.Meta("leaf", "requires:\n  up: wire\n"))
			for i := range tc.relations {
				name := fmt.Sprintf("leaf%d", i)
				statetest.AddServiceOf(t, r.st, leaf, name, 0)
				statetest.Relate(t, r.st, "hub:link", name+":up")
			}
			r.start()
			r.eventually("all are entered", func() bool { return len(r.uniter("hub/0").Relations) == tc.relations })
			r.end()
			open()
			r.start()
			for n := 20; n <= tc.relations; n += 20 { // a tool for each, since no single timeout fits all of them
				r.eventually(fmt.Sprintf("the hook has written in %d relations", n), func() bool {
					data, _ := os.ReadFile(written)
					return strings.Count(string(data), "\n") >= n
				})
			}
			r.eventually("config-changed has run again", func() bool {
				begun := len(r.noted("hub/0")) == 4 // read before the unit, so that the unit's state is newer
				return begun && r.uniter("hub/0").Op == nil
			})
			r.hubWrote(tc.failure)
		})
	}
}

// hubWrote checks that the hook failed with the message failure and wrote nothing. With an empty message, it
// checks that the hook wrote everything.
func (r *rig) hubWrote(failure string) {
	got := ""
	u := r.uniter("hub/0")
	if f := u.Workflow.Failure; f != nil {
		got = f.Message
	}
	if got != failure {
		r.t.Errorf("the hook failed with %q, want %q", got, failure)
	}
	for id := range u.Relations {
		if has := r.settings(id, "hub/0")["a"] != ""; has != (failure == "") {
			r.t.Errorf("relation-%d has the setting: %v", id, has)
		}
	}
	ports := statetest.Read(r.t, r.st, func(v *state.View) ([]state.Port, error) { return v.Ports("hub/0") })
	if (len(ports) == 1) != (failure == "") {
		r.t.Errorf("open ports: %v", ports)
	}
}
