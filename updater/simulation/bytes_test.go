package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// build is one set of files that was published as a release. Its tag may get different files later. A build
// may have a tarball whose plan differs from its package's.
type build struct {
	version string
	n       int
	split   bool
}

// simPlan determines which components a build contains, and their order, for a server's form of
// installation.
type simPlan struct {
	build   int // every third build of a version has the plan of the previous build
	version string
	tarball bool // set for the tarball of a build whose tarball has a different plan
}

func (b build) plan(form string) simPlan {
	return simPlan{b.n - b.n/3, b.version, b.split && form == release.Tarball}
}

// sums and digest return texts that represent digests.
func (b build) sums() string     { return fmt.Sprintf("sums of %+v", b) }
func (p simPlan) digest() string { return fmt.Sprintf("plan of %+v", p) }

// stepsOf returns the steps of a plan. The plans of separate tarballs and of every third version have
// an additional component first.
func (w *world) stepsOf(p simPlan) []release.Step {
	m := w.manifest
	if n, _ := strconv.Atoi(p.version[len("1.0-"):]); p.tarball || (n+p.build)%3 == 2 {
		all := m.Components
		last := len(all) - 1
		m.Components = append([]release.Component{all[last]}, all[:last]...)
	}
	return m.Steps()
}

// component returns the version of a component in a plan. Some components change only with every second
// release, but in each of its plans.
func (p simPlan) component(name string) string {
	n, _ := strconv.Atoi(p.version[len("1.0-"):])
	if len(name)%2 == 0 && name != "cke" {
		n /= 2
	}
	word := strconv.Itoa(n)
	if p.build > 0 {
		word += fmt.Sprintf("+%d", p.build)
	}
	if p.tarball {
		word += "t"
	}
	return word
}

// current returns the build that the version's tag has now.
func (w *world) current(version string) build {
	if b, ok := w.builds[version]; ok {
		return b
	}
	return build{version: version}
}

// replace gives a tag different files.
func (w *world) replace() {
	b := w.current("1.0-" + strconv.Itoa(max(0, w.nextRelease-1-w.r.IntN(2))))
	b.n++
	b.split = !b.split && w.chance(4)
	w.faults["files replaced"]++
	w.logf("release %s has other files: %+v", b.version, b)
	w.builds[b.version] = b
}

// inspect lets the leader inspect the release to which servers would update next.
func (w *world) inspect() {
	s := w.store.snapshot("")
	to, _, _ := s.OfferedVersion()
	if w.leader == nil || to == "" || w.blind {
		return
	}
	b := w.current(to)
	p := record.Published{Version: to, Digests: record.Digests{Sums: b.sums(), Plan: b.plan(release.Deb).digest()}, Checked: b.version}
	if s.Published == nil || *s.Published != p {
		w.commit([]updater.Change{updater.Put(keys.Published, p)})
	}
}

// digests returns the digests that a server's worker knows. A worker that was installed by hand does
// not know its own.
func (w *world) digests(h *host) (d record.Digests) {
	if w.blind {
		return d
	}
	if !h.byHand {
		d.Sums = h.worker.build.sums()
	}
	d.Plan = h.plan().digest()
	return d
}

// plan returns the plan of the server's worker.
func (h *host) plan() simPlan { return h.worker.build.plan(h.form) }

// refuses reports whether the server refuses to install the tag's current files.
func (w *world) refuses(h *host, r record.Request) bool {
	if w.blind || !record.Differ(r.Sums, w.current(r.Version).sums()) {
		return false
	}
	w.faults["replaced files refused"]++
	return true
}

// TestSchedulesWithoutDigests runs fleets that know no digests. Some of them must break the rule that no old
// CKE runs beside a new one. If none did, TestSchedules would not prove that digests are needed.
func TestSchedulesWithoutDigests(t *testing.T) {
	manifest := simManifest(t)
	n := uint64(1000)
	if need.LongRun() {
		n = 10_000
	}
	for seed := range n {
		w := newWorld(seed+1, manifest, true)
		w.mischiefOnly()
		if len(w.violations) > 0 && strings.HasPrefix(w.violations[0], "cke ") {
			t.Logf("seed %d: %s", seed+1, w.violations[0])
			return
		}
	}
	t.Errorf("in %d schedules without digests no old CKE ran beside a new one", n)
}

// simRepository returns the repository of releases, or "" for a fleet that knows no digests.
func simRepository(blind bool) string {
	if blind {
		return ""
	}
	return "bijou/boot"
}
