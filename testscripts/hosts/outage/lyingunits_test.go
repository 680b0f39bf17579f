package outage

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/testscripts/fakes/lyingdisk"
	"bijou/testscripts/kit/need"
)

// lyingUnits is a fleet whose BIJOU_HOME is on a disk that loses data and fails. The disk contains the
// environment's record, the tools, the machine's directory, and the units' directories with their charms. The
// state and the hooks' records are elsewhere, where nothing is lost.
type lyingUnits struct {
	*world
	disk      *lyingdisk.Disk
	elsewhere string
	services  []string

	mu       sync.Mutex
	revision int // of the charm in its folder
}

// wholeCharm runs at the start of each hook. All files of the charm must exist and come from one revision.
// The files that its install hook has created beside them must exist too. A hook that cannot read its charm
// fails before it records its beginning.
const wholeCharm = `
revision=$(cat revision) || exit 1
whole=$(sha256sum --quiet -c sums 2>&1 && cat made 2>&1) || {
	[[ $whole == *"nput/output error"* ]] && exit 1
	echo "$JUJU_UNIT_NAME ${0##*/}: $whole" >>ELSEWHERE/torn
}
`

// madeByInstall creates a file in the charm that must survive a power cut.
const madeByInstall = "\necho made >made; sync made .\n"

func newLyingUnits(t *testing.T) *lyingUnits {
	t.Helper()
	need.Long(t)
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Fatal(err)
	}
	d, elsewhere := lyingdisk.New(t), t.TempDir()
	home := filepath.Join(d.Path, "home")
	check(t, os.Mkdir(home, 0o755))
	w := prepareWorld(t, home, "sqlite:"+filepath.Join(elsewhere, "state.db"))
	w.recorded = elsewhere
	u := &lyingUnits{world: w, disk: d, elsewhere: elsewhere, services: []string{"hub", "east", "west"}}
	u.writeElsewhere()
	u.revise()
	u.disk.Cut(1)
	w.bootstrap()
	t.Cleanup(u.showLogs)
	w.deployFleet(u.services, 1)
	return u
}

// writeElsewhere makes the charm's hooks write the test's records where nothing is lost, and check
// their charm.
func (u *lyingUnits) writeElsewhere() {
	u.t.Helper()
	own := u.elsewhere + `/${JUJU_UNIT_NAME/\//-}/`
	for _, name := range []string{"hooks/install", "hooks/record", "control/run-config-changed", "control/run-client-relation-joined", "control/run-server-relation-joined", "control/run-ring-relation-joined"} {
		path := filepath.Join(u.charm, name)
		data, err := os.ReadFile(path)
		check(u.t, err)
		text := strings.ReplaceAll(string(data), "$JUJU_UNIT_DIR/", own)
		first, rest, _ := strings.Cut(text, "\n")
		switch name {
		case "hooks/record":
			text = first + strings.ReplaceAll(wholeCharm, "ELSEWHERE", u.elsewhere) + strings.ReplaceAll(rest, "$(<revision)", "$revision")
		case "hooks/install":
			text = first + madeByInstall + rest
		}
		check(u.t, os.WriteFile(path, []byte(text), 0o755))
	}
}

// revise creates a new revision of the charm, in which all its own files differ.
func (u *lyingUnits) revise() {
	u.t.Helper()
	u.mu.Lock()
	u.revision++
	revision := u.revision
	u.mu.Unlock()
	var sums strings.Builder
	for n := range 12 {
		name := fmt.Sprintf("payload/%d/file", n)
		data := bytes.Repeat(fmt.Appendf(nil, "revision %d, file %d\n", revision, n), 10+1000*(n%3))
		path := filepath.Join(u.charm, name)
		check(u.t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(u.t, os.WriteFile(path, data, 0o644))
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
	}
	check(u.t, os.WriteFile(filepath.Join(u.charm, "sums"), []byte(sums.String()), 0o644))
}

// work starts a load: it changes configurations, adds and removes relations, and upgrades charms.
func (u *lyingUnits) work() *load {
	l := newLoad(u.world, u.services)
	l.running.Go(func() { l.repeat(400*time.Millisecond, l.change) })
	l.running.Go(func() { l.repeat(3*time.Second, l.relate) })
	l.running.Go(func() {
		l.repeat(1500*time.Millisecond, func(n int) {
			u.revise()
			l.ask("upgrade-charm", u.services[n%len(u.services)])
		})
	})
	return l
}

// showLogs prints the output of the hooks if the test has failed.
func (u *lyingUnits) showLogs() {
	logs, _ := filepath.Glob(u.Unit("*", "hooks.log"))
	for _, log := range logs {
		if data, err := os.ReadFile(log); u.t.Failed() {
			u.t.Logf("%s ends (%v):\n%s", log, err, data[max(0, len(data)-1500):])
		}
	}
}

// cut cuts the power. Processes that use the disk end immediately, and data that was not synced is lost.
func (u *lyingUnits) cut(l *load, survive float64) {
	u.t.Helper()
	u.disk.KillUsers()
	l.halt()
	u.disk.KillUsers()
	u.killAll()
	u.noteKill()
	u.disk.Cut(survive)
	u.checkTorn()
}

func (u *lyingUnits) checkTorn() {
	u.t.Helper()
	if torn, err := os.ReadFile(filepath.Join(u.elsewhere, "torn")); err == nil {
		u.t.Errorf("hooks ran from charms that are not whole: %s", torn)
	}
}

// settleUnits waits until every unit has run all hooks that are due, and checks every record against the
// rules.
func (u *lyingUnits) settleUnits(what, counted string) {
	u.t.Helper()
	u.Juju("set", "hub", "set=turn=last-"+strconv.Itoa(u.revision))
	u.settle(what)
	u.judge(what, counted)
	u.checkTorn()
}

// TestUnitsUnsyncedIsLost cuts the power under working units. Their directories, charms and tools are on a
// disk that keeps all synced data, and none or some of the other data.
func TestUnitsUnsyncedIsLost(t *testing.T) {
	u := newLyingUnits(t)
	chances := []float64{0, 0.5, 0, 0.9}
	for _, survive := range chances {
		l := u.work()
		rest(time.Second + time.Duration(u.disk.Dice.IntN(int(4*time.Second))))
		u.cut(l, survive)
		u.Juju("start")
	}
	u.settleUnits("units' unsynced is lost", fmt.Sprintf("%d cuts, %d revisions of the charm", len(chances), u.revision))
}

// TestUnitsFailingDisk makes syncs, writes and reads of the units' directories fail briefly. Afterwards the
// units must continue by themselves.
func TestUnitsFailingDisk(t *testing.T) {
	u := newLyingUnits(t)
	for _, what := range []string{"sync", "write", "read"} {
		l := u.work()
		for range 4 {
			rest(time.Duration(u.disk.Dice.IntN(int(time.Second))))
			u.disk.Fail(what)
			rest(200*time.Millisecond + time.Duration(u.disk.Dice.IntN(int(time.Second))))
			u.disk.Heal()
			rest(time.Duration(u.disk.Dice.IntN(int(time.Second))))
		}
		failed := u.disk.Failed(what)
		if failed == 0 {
			t.Errorf("no %s failed", what)
		}
		u.cut(l, 0)
		u.Juju("start")
		u.settleUnits("units' failing disk, "+what, fmt.Sprintf("%d failures", failed))
	}
}
