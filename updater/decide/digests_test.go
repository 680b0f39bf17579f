package decide

import (
	"slices"
	"strings"
	"testing"

	"bijou/updater/record"
)

// TestDigests checks which digests a request gets, and from which source.
func TestDigests(t *testing.T) {
	published := func(version, sums string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Config.GitHubRepository = "bijou/boot"
			s.Published = &record.Published{Version: version, Digests: record.Digests{Sums: sums, Plan: "plan"}, Checked: "1.1"}
			s.Current.Digests = record.Digests{Sums: "old", Plan: "plan"}
		}
	}
	both := func(f, g func(*Snapshot)) func(*Snapshot) { return func(s *Snapshot) { f(s); g(s) } }
	asked := func(sums string) func(*Snapshot) {
		return func(s *Snapshot) { s.Target = &record.Target{Version: "1.1", Sums: sums, Passed: "1.1"} }
	}
	added := func(s *Snapshot) { s.Servers = []int{1, 2, 3, 10} }
	newer := func(s *Snapshot) { s.Release = "1.2" }
	for what, tt := range map[string]struct {
		change func(*Snapshot)
		verb   Verb
		why    string
	}{
		"they are known":            {both(published("1.2", "new"), newer), Start, "1.2"},
		"nobody has looked at them": {both(both(published("1.2", "new"), newer), func(s *Snapshot) { s.Published.Checked = "" }), Wait, "the leader has not yet looked up the files of release 1.2"},
		"nobody has looked, and none has to install them": {both(both(published("1.2", "new"), newer), func(s *Snapshot) {
			s.Published.Checked, s.Present = "", map[int]record.Presence{}
			for _, lrn := range s.Servers {
				s.Present[lrn] = record.Presence{Version: "1.2"}
			}
		}), Warn, "its worker has version 1.2, not 1.1"},
		"refused, and asked for": {both(published("1.2", "new"), func(s *Snapshot) {
			s.Target = &record.Target{Version: "1.2", Passed: "1.1"}
			s.Refused.Releases = []record.Refusal{{Version: "1.2", Why: "it has no package"}}
		}), Wait, "release 1.2 is refused: it has no package"},
		"an older one than the one that is refused": {both(both(published("1.2", "new"), newer), func(s *Snapshot) {
			s.Refused.Releases = []record.Refusal{{Version: "1.3", Why: "it has no package"}}
		}), Start, "1.2"},
		"of another release":             {both(published("1.1", "old"), newer), Wait, "the leader has not yet looked up the files of release 1.2"},
		"up to date":                     {published("1.1", "old"), Wait, "up to date"},
		"replaced":                       {published("1.1", "new"), Wait, "the files of release 1.1 were replaced"},
		"replaced, and a server added":   {both(published("1.1", "new"), added), Wait, "the files of release 1.1 were replaced"},
		"a server added":                 {both(published("1.1", "old"), added), Start, "(servers)"},
		"replaced, and asked for":        {both(published("1.1", "new"), asked("new")), Start, "1.1 (operator)"},
		"asked for before":               {both(published("1.1", "new"), asked("old")), Wait, "were replaced"},
		"asked for, and replaced since":  {both(published("1.1", "newest"), asked("new")), Wait, "not new"},
		"nobody knew digests":            {both(published("1.1", "new"), func(s *Snapshot) { s.Current.Digests = record.Digests{} }), Wait, "up to date"},
		"nobody knew digests, one added": {both(both(published("1.1", "new"), added), func(s *Snapshot) { s.Current.Digests = record.Digests{} }), Start, "(servers)"},
	} {
		t.Run(what, func(t *testing.T) {
			a := Next(base(tt.change), t0())
			if a.Verb != tt.verb || !strings.Contains(a.Why, tt.why) {
				t.Errorf("%s: %q; want %s: %q", a.Verb, a.Why, tt.verb, tt.why)
			}
		})
	}
	a := Next(base(both(published("1.2", "new"), newer)), t0())
	if r := a.Changes[0].Value.(record.Request); r.Sums != "new" || r.Plan != "plan" {
		t.Errorf("the request is of %+v", r.Digests)
	}
}

// TestOtherPlans checks which servers count as having a different plan from the others.
func TestOtherPlans(t *testing.T) {
	plan := func(w record.Status, digest string) record.Status { w.Plan = digest; return w }
	others := func(workers ...record.Status) []int {
		lrns, _ := running(workers...).otherPlans()
		return lrns
	}
	failedBefore := plan(came(1), "q")
	failedBefore.Attempt = 0
	for what, tt := range map[string]struct {
		workers []record.Status
		want    []int
	}{
		"one":                  {[]record.Status{plan(came(1), "p"), plan(came(3), "p"), came(1)}, nil},
		"two":                  {[]record.Status{plan(came(1), "p"), plan(came(1), "q"), came(1)}, []int{2}},
		"another name":         {[]record.Status{came(1), came(1), at(1)}, []int{10}},
		"in another attempt":   {[]record.Status{plan(came(1), "p"), failedBefore}, nil},
		"not yet at any step":  {[]record.Status{plan(came(1), "p"), plan(at(0), "q")}, nil},
		"further, in the same": {[]record.Status{came(2), came(3), came(4)}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			if got := others(tt.workers...); !slices.Equal(got, tt.want) {
				t.Errorf("others are %v, want %v", got, tt.want)
			}
		})
	}
}
