package updater

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/updater/record"
)

// wellKept is a fleet that is as the last update left it.
func wellKept(change func(*Snapshot)) Snapshot {
	d := record.Digests{Sums: "sums", Plan: "plan"}
	s := base(func(s *Snapshot) {
		s.Current.Digests, s.Present = d, map[int]record.Presence{}
		s.Inventories, s.Workers = map[int]record.Inventory{}, map[int]record.Status{}
		for _, lrn := range s.Servers {
			s.Present[lrn] = record.Presence{Version: "1.1", Digests: d}
			s.Inventories[lrn] = record.Inventory{Request: s.Current.ID}
			s.Workers[lrn] = record.Status{Version: s.Current.Version, Request: s.Current.ID, Finished: true}
		}
	})
	change(&s)
	return s
}

// withFindings is what the leader makes of a fleet, and has written down.
func withFindings(change func(*Snapshot)) Snapshot {
	s := wellKept(change)
	s.Degraded.Findings = s.Findings(t0())
	return s
}

func TestFindings(t *testing.T) {
	differs := func(s *Snapshot, lrn int, component string) {
		s.Inventories[lrn] = record.Inventory{Request: s.Current.ID, Differs: map[string][]string{component: {"its artifact is old"}}}
	}
	present := func(s *Snapshot, p record.Presence) { s.Present[2] = p }
	for what, tt := range map[string]struct {
		change func(*Snapshot)
		want   string
		repair string // its components, or why there is none
	}{
		"all is well":         {func(*Snapshot) {}, "", "none"},
		"digests are unknown": {func(s *Snapshot) { present(s, record.Presence{Version: "1.1"}) }, "", "none"},
		"no worker": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Absent = map[int]time.Time{2: t0().Add(-absenceTimeout)}
		}, "server 2: no worker is alive", "none"},
		"gone for a moment": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Absent = map[int]time.Time{2: t0()}
		}, "", "none"},
		"never seen": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Unseen, s.Absent = []int{2}, map[int]time.Time{2: t0().Add(-absenceTimeout)}
		}, "server 2: no worker was ever seen", "none"},
		"just registered": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Unseen, s.Absent = []int{2}, map[int]time.Time{2: t0()}
		}, "", "none"},
		"an older version": {func(s *Snapshot) { present(s, record.Presence{Version: "1.0"}) }, "server 2: its worker is of 1.0, not of 1.1", "[]"},
		"other files": {func(s *Snapshot) {
			present(s, record.Presence{Version: "1.1", Digests: record.Digests{Sums: "old", Plan: "plan"}})
		},
			"server 2: it was installed from other files: the digest of their SHA256SUMS is old, not sums", "[]"},
		"another plan": {func(s *Snapshot) { present(s, record.Presence{Version: "1.1", Digests: record.Digests{Plan: "old"}}) },
			"server 2: its plan is another one: its digest is old, not plan", "[]"},
		"a component":         {func(s *Snapshot) { differs(s, 2, "cke") }, "server 2, cke: its artifact is old", "[cke]"},
		"two, on two servers": {func(s *Snapshot) { differs(s, 2, "cke"); differs(s, 10, "serf") }, "server 2, cke: its artifact is old|server 10, serf: its artifact is old", "[cke serf]"},
		"two, one of them is meant": {func(s *Snapshot) {
			differs(s, 2, "cke")
			differs(s, 10, "serf")
			s.Repair = &record.Repair{Servers: []int{10}}
		}, "server 2, cke: its artifact is old|server 10, serf: its artifact is old", "[serf]"},
		"of before the last update": {func(s *Snapshot) {
			s.Inventories[2] = record.Inventory{Request: 3, Differs: map[string][]string{"cke": {"its artifact is old"}}}
		}, "", "none"},
		"another server in its place": {func(s *Snapshot) { delete(s.Workers, 2) }, "server 2: it has no part in the last update: another server has taken its place", "[]"},
		"no part of the last update": {func(s *Snapshot) {
			s.Current.Servers = []int{1, 10}
			present(s, record.Presence{Version: "1.0"})
		}, "", "none"},
	} {
		s := withFindings(tt.change)
		var words []string
		for _, f := range s.Degraded.Findings {
			words = append(words, f.String())
		}
		if got := strings.Join(words, "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
		repair := "none"
		if s.canRepair() {
			repair = fmt.Sprint(s.repairComponents())
		}
		if repair != tt.repair {
			t.Errorf("%s: a repair of %s, want %s", what, repair, tt.repair)
		}
	}
}

// The leader says what differs, once, and what it does about it.
func TestRest(t *testing.T) {
	old := func(s *Snapshot) { s.Present[2] = record.Presence{Version: "1.0"} }
	auto := func(s *Snapshot) { old(s); s.Config.Repair = record.RepairAuto }
	window, err := record.ParseWindow("0 22 * * *; 6h; UTC")
	if err != nil {
		t.Fatal(err)
	}
	again := withFindings(func(s *Snapshot) { auto(s); s.Current.Repair = true })
	before := withFindings(auto)
	before.Current.Repair = true
	before.Degraded.Findings[0].Since = t0().Add(repairCooldown + time.Second)
	other := withFindings(auto)
	other.Current.Repair, other.Current.Components = true, []string{"cke"}
	for what, tt := range map[string]struct {
		s      Snapshot
		verb   Verb
		why    string
		alerts int
	}{
		"new":   {wellKept(old), Warn, "server 2: its worker is of 1.0, not of 1.1", 1},
		"known": {withFindings(old), Wait, "up to date", 0},
		"over":  {with(withFindings(old), func(s *Snapshot) { s.Present[2] = s.Present[1] }), Warn, "again", 0},
		"asked": {withFindings(func(s *Snapshot) { old(s); s.Repair = &record.Repair{Who: "me"} }), Start, "(repair)", 0},
		"asked, and no updates are taken": {withFindings(func(s *Snapshot) {
			old(s)
			s.Repair, s.Config.Env, s.Release = &record.Repair{}, record.EnvNone, ""
			s.Config.GitHubRepository = "bijou/boot"
		}), Start, "1.1 (repair)", 0},
		"asked in vain":    {withFindings(func(s *Snapshot) { s.Repair = &record.Repair{} }), Warn, "no repair: nothing differs", 0},
		"asked, paused":    {withFindings(func(s *Snapshot) { old(s); s.Repair = &record.Repair{}; s.Pause = &record.Pause{} }), Wait, "paused", 0},
		"by itself":        {withFindings(auto), Start, "(repair: auto)", 0},
		"window closed":    {withFindings(func(s *Snapshot) { auto(s); s.Config.Window = window }), Wait, "the update window opens", 0},
		"one did not help": {again, Wait, "up to date", 0},
		"one did, before":  {before, Start, "(repair: auto)", 0},
		"one did not help, and its finding is new": {with(again, func(s *Snapshot) { s.Degraded.Findings[0].Since = t0().Add(time.Minute) }), Wait, "up to date", 0},
		"one was about something else":             {other, Start, "(repair: auto)", 0},
		"a server is dead":                         {withFindings(func(s *Snapshot) { auto(s); delete(s.Present, 10) }), Wait, "up to date", 0},
	} {
		a := Next(tt.s, t0())
		alerts := 0
		for _, c := range a.Changes {
			if alert, ok := c.Value.(record.Alert); ok && alert.Kind == record.AlertDegraded {
				alerts++
			}
		}
		if a.Verb != tt.verb || !strings.Contains(a.Why, tt.why) || alerts != tt.alerts {
			t.Errorf("%s: %s: %q, %d alerts; want %s: %q, %d", what, a.Verb, a.Why, alerts, tt.verb, tt.why, tt.alerts)
		}
	}
	if a := Next(withFindings(func(s *Snapshot) { s.Absent = map[int]time.Time{2: t0().Add(-time.Second)} }), t0()); !a.Until.Equal(t0().Add(absenceTimeout - time.Second)) {
		t.Errorf("it looks at one that has just gone at %s", a.Until)
	}
}

// A repair passes the steps of components that differ nowhere, without waiting there.
func TestRepairSteps(t *testing.T) {
	of := func(step int, components ...string) Task {
		return NextTask(seated(step, func(s *WorkerSnapshot) { s.Current.Repair, s.Current.Components = true, components }), t0())
	}
	if got := of(1, "b"); got.Job != Write || got.Status.StepName != "a/update" {
		t.Errorf("the stop of what differs nowhere: %s, %+v", got.Job, got.Status)
	}
	if got := of(3, "a"); got.Job != Write || !got.Status.Finished {
		t.Errorf("the last step: %s, %+v", got.Job, got.Status)
	}
	for _, components := range [][]string{{"a"}, {"a", "b"}, nil} {
		if got := of(1, components...); got.Job != Idle {
			t.Errorf("of %v: %s, though others may have to stop it", components, got.Job)
		}
	}
}

// Which bytes a request is for, and whose they are.
func TestDigests(t *testing.T) {
	published := func(version, sums string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Config.GitHubRepository = "bijou/boot"
			s.Published = &record.Published{Version: version, Digests: record.Digests{Sums: sums, Plan: "plan"}}
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
		"they are known":                 {both(published("1.2", "new"), newer), Start, "1.2"},
		"of another release":             {both(published("1.1", "old"), newer), Wait, "it is not known yet which files release 1.2 consists of"},
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
		a := Next(base(tt.change), t0())
		if a.Verb != tt.verb || !strings.Contains(a.Why, tt.why) {
			t.Errorf("%s: %s: %q; want %s: %q", what, a.Verb, a.Why, tt.verb, tt.why)
		}
	}
	a := Next(base(both(published("1.2", "new"), newer)), t0())
	if r := a.Changes[0].Value.(record.Request); r.Sums != "new" || r.Plan != "plan" {
		t.Errorf("the request is of %+v", r.Digests)
	}
}

// Which bytes a worker takes for its own, and which plans meet at a barrier.
func TestWorkersDigests(t *testing.T) {
	of := func(own, wanted record.Digests, change func(*WorkerSnapshot)) Task {
		return NextTask(seated(0, func(s *WorkerSnapshot) {
			s.Digests, s.Current.Digests = own, wanted
			if change != nil {
				change(s)
			}
		}), t0())
	}
	want := record.Digests{Sums: "s", Plan: "p"}
	for what, tt := range map[string]struct {
		own, wanted record.Digests
		change      func(*WorkerSnapshot)
		job         Job
		says        string
	}{
		"the same":                         {want, want, nil, Write, ""},
		"the request knows none":           {want, record.Digests{}, nil, Write, ""},
		"nobody knows any":                 {record.Digests{}, record.Digests{}, nil, Write, ""},
		"by hand, the plan is the same":    {record.Digests{Plan: "p"}, want, nil, Write, ""},
		"by hand, the plan is another":     {record.Digests{Plan: "q"}, want, nil, Install, ""},
		"other files of the version":       {record.Digests{Sums: "t", Plan: "p"}, want, nil, Install, ""},
		"these, with another plan":         {record.Digests{Sums: "s", Plan: "q"}, want, nil, Write, "the digest of this server's plan is q, and that of release 1.1 is p"},
		"installed, but not known whereof": {record.Digests{Plan: "q"}, want, func(s *WorkerSnapshot) { s.Journal = did(0, Done) }, Write, "the digest of this server's plan is q"},
	} {
		got := of(tt.own, tt.wanted, tt.change)
		if got.Job != tt.job || !strings.Contains(got.Status.Message, tt.says) || got.Status.Error != (tt.says != "") {
			t.Errorf("%s: %s, %q; want %s, %q", what, got.Job, got.Status.Message, tt.job, tt.says)
		}
	}

	plan := func(w record.Status, digest string) record.Status { w.Plan = digest; return w }
	met := func(other record.Status) bool {
		s := seated(2, func(s *WorkerSnapshot) {
			s.Digests.Plan = "p"
			s.Workers = map[int]record.Status{1: came(2), 2: came(2), 10: other}
		})
		return NextTask(s, t0()).Job == Run
	}
	for what, tt := range map[string]struct {
		other record.Status
		want  bool
	}{
		"the same plan":            {plan(came(2), "p"), true},
		"an unknown one":           {came(3), true},
		"another, at its step 3":   {plan(came(3), "q"), false},
		"another, and all is done": {plan(finished(), "q"), false},
		"another name":             {at(3), false},
		"no name, as before":       {func() record.Status { w := at(2); w.StepName = ""; return w }(), true},
	} {
		if got := met(tt.other); got != tt.want {
			t.Errorf("%s: they meet: %t", what, got)
		}
	}
	gate := func(name, digest string) bool {
		g := opened(2)
		g.StepName, g.Plan = name, digest
		return NextTask(seated(2, func(s *WorkerSnapshot) { s.Digests.Plan, s.Gate = "p", g }), t0()).Job == Run
	}
	if !gate("", "") || !gate("a/update", "p") || !gate("b/update", "") || gate("a/stop", "p") || gate("a/update", "q") || gate("x", "") {
		t.Error("a gate lets pass whom it should not, or not whom it should")
	}

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
		if got := others(tt.workers...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: others are %v, want %v", what, got, tt.want)
		}
	}
	if MoveGo != NextOnce(OnceSnapshot{Version: "1.1", Plan: "p", Leads: true, Contents: &record.Contents{Version: "1.1", Plan: "q", Success: true}}) {
		t.Error("contents of another plan are taken for these")
	}
}
