package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/secret"
)

// TestNextSecretHook checks which secret hook of web/0 is due, or when the next one is.
func TestNextSecretHook(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Minute)
	dbs := secret.Owner{Service: "db"}
	own := secret.Owner{Unit: "web/0"}
	read := func(unit string, revision, told int) map[string]secret.Consumer {
		return map[string]secret.Consumer{unit: {Revision: revision, Told: told}}
	}
	two := map[int]secret.Revision{1: {}, 2: {}}
	grant := []secret.Grant{{Relation: 1, Service: "web"}}
	run := func(kind string, revision int) Step {
		return RunHook{hook.ForSecret(kind, "x", revision), FromWorkflow}
	}
	for name, c := range map[string]struct {
		record  secret.Record
		life    state.Life
		granted []string
		want    Step
		until   time.Time
	}{
		"nothing":                       {record: secret.Record{Owner: dbs, Latest: 1, Consumers: read("web/0", 1, 0), Grants: grant}},
		"a newer revision":              {record: secret.Record{Owner: dbs, Latest: 2, Consumers: read("web/0", 1, 0), Grants: grant}, want: run(hook.SecretChanged, 2)},
		"it was told":                   {record: secret.Record{Owner: dbs, Latest: 2, Consumers: read("web/0", 1, 2), Grants: grant}},
		"one newer still":               {record: secret.Record{Owner: dbs, Latest: 3, Consumers: read("web/0", 1, 2), Grants: grant}, want: run(hook.SecretChanged, 3)},
		"it never read it":              {record: secret.Record{Owner: dbs, Latest: 2, Consumers: read("web/1", 1, 0), Grants: grant}},
		"the grant was taken back":      {record: secret.Record{Owner: dbs, Latest: 2, Consumers: read("web/0", 1, 0)}},
		"the relation has ended":        {record: secret.Record{Owner: dbs, Latest: 2, Consumers: read("web/0", 1, 0), Grants: []secret.Grant{{Relation: 7, Service: "web"}}}},
		"an operator's":                 {record: secret.Record{Latest: 2, Consumers: read("web/0", 1, 0), Grants: []secret.Grant{{Relation: -1, Service: "web"}}}, granted: []string{"x"}, want: run(hook.SecretChanged, 2)},
		"an operator's, of before":      {record: secret.Record{Latest: 2, Consumers: read("web/0", 1, 0), Grants: []secret.Grant{{Relation: -1, Service: "web"}}}},
		"it leaves":                     {record: secret.Record{Owner: dbs, Latest: 2, Consumers: read("web/0", 1, 0), Grants: grant}, life: state.Dying},
		"nobody reads the first":        {record: secret.Record{Owner: own, Latest: 2, Revisions: two}, want: run(hook.SecretRemove, 1)},
		"that was told":                 {record: secret.Record{Owner: own, Latest: 2, Revisions: map[int]secret.Revision{1: {Obsolete: true}, 2: {}}}},
		"db/0 reads it":                 {record: secret.Record{Owner: own, Latest: 2, Revisions: two, Consumers: read("db/0", 1, 0), Grants: []secret.Grant{{Relation: 1, Service: "db"}}}},
		"db/9, which has left, read it": {record: secret.Record{Owner: own, Latest: 2, Revisions: two, Consumers: read("db/9", 1, 0), Grants: []secret.Grant{{Relation: 1, Service: "db"}}}, want: run(hook.SecretRemove, 1)},
		"due for rotation":              {record: secret.Record{Owner: own, Latest: 4, Rotate: "daily", RotateAt: now}, want: run(hook.SecretRotate, 4)},
		"due in a minute":               {record: secret.Record{Owner: own, Latest: 4, Rotate: "daily", RotateAt: later}, until: later},
		"expired":                       {record: secret.Record{Owner: own, Latest: 1, Revisions: map[int]secret.Revision{1: {DueAt: now}}}, want: run(hook.SecretExpired, 1)},
		"expires in a minute":           {record: secret.Record{Owner: own, Latest: 1, Revisions: map[int]secret.Revision{1: {DueAt: later}}, RotateAt: later.Add(1)}, until: later},
		"due, and it manages it not":    {record: secret.Record{Owner: dbs, Latest: 2, Revisions: two, RotateAt: now}},
	} {
		t.Run(name, func(t *testing.T) {
			c.record.ID = "x"
			s := Snapshot{Now: now, Unit: state.Unit{Name: "web/0", Service: "web", Life: state.Alive}, Relations: map[int]Relation{
				1: {Members: []state.Member{{Unit: "db/0"}}},
			}, Secrets: Secrets{Records: []secret.Record{c.record}, Granted: c.granted}}
			if c.life != "" {
				s.Unit.Life = c.life
			}
			if c.record.Owner == own {
				s.Secrets.Managed = []string{"x"}
			}
			got, until := s.nextSecretHook()
			if diff := cmp.Diff(c.want, got); diff != "" || !until.Equal(c.until) {
				t.Errorf("until %v, want %v; step -want +got:\n%s", until, c.until, diff)
			}
		})
	}
}

// TestSecretHookDone checks that a hook is due again soon if the charm has not acted on it, and otherwise at its regular
// time.
func TestSecretHookDone(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	done := func(kind string, revision int) secret.Record {
		r := secret.Record{ID: "x", Rotate: "daily", RotateAt: now, Latest: 3, Revisions: map[int]secret.Revision{2: {DueAt: now}, 3: {}},
			Consumers: map[string]secret.Consumer{"web/0": {Revision: 1}}}
		SecretHookDone(&r, "web/0", hook.ForSecret(kind, "x", revision), now)
		return r
	}
	if r := done(hook.SecretRotate, 3); !r.RotateAt.Equal(now.Add(retryInterval)) {
		t.Errorf("due at %s: it has not been rotated", r.RotateAt)
	}
	if r := done(hook.SecretRotate, 2); !r.RotateAt.Equal(now.AddDate(0, 0, 1)) {
		t.Errorf("due at %s: it was rotated", r.RotateAt)
	}
	if r := done(hook.SecretExpired, 2); !r.Revisions[2].DueAt.Equal(now.Add(retryInterval)) {
		t.Errorf("due at %s: it has not been removed", r.Revisions[2].DueAt)
	}
	if r := done(hook.SecretRemove, 2); !r.Revisions[2].Obsolete || r.Revisions[3].Obsolete {
		t.Errorf("revisions %+v", r.Revisions)
	}
	if r := done(hook.SecretRemove, 1); len(r.Revisions) != 2 {
		t.Errorf("a removed revision is there again: %+v", r.Revisions)
	}
	if r := done(hook.SecretChanged, 3); r.Consumers["web/0"].Told != 3 {
		t.Errorf("told %+v", r.Consumers)
	}
}
