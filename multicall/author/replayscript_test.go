package author

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/charm"
	"bijou/state/status"
)

// TestQuoteWord checks how words are quoted in a script's line.
func TestQuoteWord(t *testing.T) {
	for word, want := range map[string]string{
		"port=80":    "port=80",
		"":           "''",
		"a b":        "'a b'",
		"it's":       "'it''s'",
		"price=$5":   "'price=$5'",
		"# no":       "'# no'",
		"a&b":        "'a&b'",
		"café=\t":    "'café=\t'",
		`back\slash`: `back\slash`,
	} {
		t.Run(word, func(t *testing.T) {
			if got := quoteWord(word); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestReplayScript checks the script that replays a hook: the world before it, the commands that
// trigger it, and the checks after it.
func TestReplayScript(t *testing.T) {
	meta := charm.Meta{Name: "blog", Declared: map[string]charm.Relation{
		"db":   {Name: "db", Role: charm.Consumes, Interface: "mysql"},
		"site": {Name: "site", Role: charm.Provides, Interface: "http"},
		"ring": {Name: "ring", Role: charm.Peers, Interface: "ring"},
	}}
	said := func(pairs ...string) status.RelationData {
		data := map[string]string{"private-address": "10.1.1.1"}
		for _, p := range pairs {
			name, value, _ := strings.Cut(p, "=")
			data[name] = value
		}
		return status.RelationData{InScope: true, Data: data}
	}
	db := status.RelationDetail{
		ID: 3, Endpoint: "db", RelatedEndpoint: "server", Service: "mysql",
		AppData:      map[string]string{"version": "8"},
		RelatedUnits: map[string]status.RelationData{"mysql/4": said("user=a"), "mysql/7": said("user=b", "password=(hidden)")},
		LocalUnit:    said("want=web/2", "at=http://10.1.1.1/", "late=1"),
	}
	ring := status.RelationDetail{ID: 1, Endpoint: "ring", RelatedEndpoint: "ring", Service: "web", RelatedUnits: map[string]status.RelationData{"web/0": said()}}
	started := status.HookRun{Hook: "start", Number: 1}

	for what, tt := range map[string]struct {
		run   status.HookRun
		want  string // without the head
		wrong string // or an error
	}{
		"a unit has said something": {status.HookRun{Hook: "db-relation-changed", Relation: "relation-3", Remote: "mysql/7"}, `
stub mysql provides server:mysql
juju add-unit mysql
juju deploy . web --config colour=red
juju add-unit web
settled
juju add-relation web:db mysql:server
settled
stub set --app mysql server version=8
settled

# db-relation-changed mysql/7
juju do --unit mysql/0 relation-set --relation server user=a
juju do --unit mysql/1 relation-set --relation server password=hidden-password user=b
settled
journal web/0
stdout '^web/0 db-relation-changed mysql/1'
stub saw mysql server at want=web/0
`, ""},
		"an application has": {status.HookRun{Hook: "db-relation-changed", Relation: "relation-3", Remote: "mysql"}, `
stub mysql provides server:mysql
juju add-unit mysql
juju deploy . web --config colour=red
juju add-unit web
settled
juju add-relation web:db mysql:server
settled
juju do --unit mysql/0 relation-set --relation server user=a
juju do --unit mysql/1 relation-set --relation server password=hidden-password user=b
settled

# db-relation-changed mysql
stub set --app mysql server version=8
settled
journal web/0
stdout '^web/0 db-relation-changed mysql'
stub saw mysql server at want=web/0
`, ""},
		"a relation is gone": {status.HookRun{Hook: "site-relation-broken", Relation: "relation-9"}, `
stub mysql provides server:mysql
juju add-unit mysql
stub other requires site:http
juju deploy . web --config colour=red
juju add-relation web:db mysql:server
juju add-unit web
settled
stub set --app mysql server version=8
juju do --unit mysql/0 relation-set --relation server user=a
juju do --unit mysql/1 relation-set --relation server password=hidden-password user=b
settled
juju add-relation web:site other:site
settled
# What the other side had said is not known: the relation is gone.

# site-relation-broken
juju destroy-relation web:site other:site
settled
journal web/0
stdout '^web/0 site-relation-broken'
stub saw mysql server at want=web/0
`, ""},
		"an option": {status.HookRun{Hook: "config-changed"}, `
stub mysql provides server:mysql
juju add-unit mysql
juju deploy . web
juju add-relation web:db mysql:server
juju add-unit web
settled
stub set --app mysql server version=8
juju do --unit mysql/0 relation-set --relation server user=a
juju do --unit mysql/1 relation-set --relation server password=hidden-password user=b
settled

# config-changed
juju set web colour=red
settled
journal web/0
stdout '^web/0 config-changed'
stub saw mysql server at want=web/0
`, ""},
		"the beginning": {status.HookRun{Hook: "install"}, `

# install
juju deploy . web --config colour=red
settled
journal web/0
stdout '^web/0 install'
`, ""},
		"no such relation": {status.HookRun{Hook: "cache-relation-changed", Relation: "relation-9"}, "", `the charm in this folder has no relation "cache"`},
		"a secret":         {status.HookRun{Hook: "secret-changed"}, "", "no command that has such a hook run"},
	} {
		t.Run(what, func(t *testing.T) {
			r := replay{meta: meta, name: "web/2", service: "web", run: tt.run, earlier: []status.HookRun{started}, unit: status.UnitDetail{
				Leader:    true,
				Options:   map[string]any{"colour": "red"},
				Relations: []status.RelationDetail{ring, db},
			}}
			r.later = []status.HookRun{{Hook: "update-status", Changes: []string{`relation-3 of web/2: setting changed: "late"="1" (was unset)`}}}

			text, err := r.script()
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("%v, want %s", err, tt.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(string(text), "(was unset)\n")
			if diff := cmp.Diff(tt.want, body); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReplayedHooksHaveTime holds that a script waits longer for hooks that have taken long.
func TestReplayedHooksHaveTime(t *testing.T) {
	for what, tt := range map[string]struct {
		seconds []float64
		want    string
	}{
		"quick hooks":      {[]float64{0.1, 2, 3}, "settled\n"},
		"a little slower":  {[]float64{4, 5, 4}, "settled 1m\n"},
		"a long install":   {[]float64{240, 5, 4}, "settled 13m\n"},
		"no known history": {[]float64{0}, "settled\n"},
	} {
		t.Run(what, func(t *testing.T) {
			r := replay{run: status.HookRun{Seconds: tt.seconds[0]}}
			for _, seconds := range tt.seconds[1:] {
				r.earlier = append(r.earlier, status.HookRun{Seconds: seconds})
			}

			r.settle()
			if got := r.commands.String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
