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

// build is one set of files that was published as a release. Its tag may be given others,
// and a build may have a tarball whose plan is not that of its package.
type build struct {
	version string
	n       int
	split   bool
}

// simPlan says which components a build brings, and in which order: to a server by its form.
type simPlan struct {
	build   int // every third build of a version has the plan of the one before
	version string
	tarball bool // of a build that is split
}

func (b build) plan(form string) simPlan {
	return simPlan{b.n - b.n/3, b.version, b.split && form == release.Tarball}
}

// sums and digest are what the digests stand for.
func (b build) sums() string     { return fmt.Sprintf("sums of %+v", b) }
func (p simPlan) digest() string { return fmt.Sprintf("plan of %+v", p) }

// steps are the plan's: that of a tarball by itself, and of every third version, has
// something before all else.
func (w *world) stepsOf(p simPlan) []release.Step {
	m := w.manifest
	if n, _ := strconv.Atoi(p.version[len("1.0-"):]); p.tarball || (n+p.build)%3 == 2 {
		all := m.Components
		last := len(all) - 1
		m.Components = append([]release.Component{all[last]}, all[:last]...)
	}
	return m.Steps()
}

// component is the version of a component in a plan: some change with every second
// release only, but in each plan of it.
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

// current is what the version's tag has.
func (w *world) current(version string) build {
	if b, ok := w.builds[version]; ok {
		return b
	}
	return build{version: version}
}

// replace gives a tag other files.
func (w *world) replace() {
	b := w.current("1.0-" + strconv.Itoa(max(0, w.nextRelease-1-w.r.IntN(2))))
	b.n++
	b.split = !b.split && w.chance(4)
	w.faults["files replaced"]++
	w.logf("release %s has other files: %+v", b.version, b)
	w.builds[b.version] = b
}

// inspect is the leader that has looked at the release that servers would take next.
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

// digests are what a server's worker knows of itself. One that was installed by hand
// does not know what from.
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

// plan is that of the server's worker.
func (h *host) plan() simPlan { return h.worker.build.plan(h.form) }

// refuses reports whether the server does not install what the tag has now.
func (w *world) refuses(h *host, r record.Request) bool {
	if w.blind || !record.Differ(r.Sums, w.current(r.Version).sums()) {
		return false
	}
	w.faults["replaced files refused"]++
	return true
}

// TestSchedulesWithoutDigests has fleets that know no digests: the rule that no old CKE
// runs beside a new one must be broken then, or TestSchedules shows nothing.
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

// simRepository is where releases are; where nobody knows digests, nobody looks.
func simRepository(blind bool) string {
	if blind {
		return ""
	}
	return "bijou/boot"
}
