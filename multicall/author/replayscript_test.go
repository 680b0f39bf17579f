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
juju integrate web:db mysql:server
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
juju integrate web:db mysql:server
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
juju integrate web:db mysql:server
juju add-unit web
settled
stub set --app mysql server version=8
juju do --unit mysql/0 relation-set --relation server user=a
juju do --unit mysql/1 relation-set --relation server password=hidden-password user=b
settled
juju integrate web:site other:site
settled
# The settings of the other application are not known, because the relation has been removed.

# site-relation-broken
juju remove-relation web:site other:site
settled
journal web/0
stdout '^web/0 site-relation-broken'
stub saw mysql server at want=web/0
`, ""},
		"an option": {status.HookRun{Hook: "config-changed"}, `
stub mysql provides server:mysql
juju add-unit mysql
juju deploy . web
juju integrate web:db mysql:server
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
		"no such relation": {status.HookRun{Hook: "cache-relation-changed", Relation: "relation-9"}, "", `the charm in this directory has no relation "cache"`},
		"a secret":         {status.HookRun{Hook: "secret-changed"}, "", "a script cannot make a unit run this hook"},
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

// TestReplayBesideSubordinates checks the scripts for units that have a subordinate, and for units of a subordinate,
// which run only beside a unit of their principal.
func TestReplayBesideSubordinates(t *testing.T) {
	principal := charm.Meta{Name: "web"}
	subordinate := charm.Meta{Name: "mon", Subordinate: true, Declared: map[string]charm.Relation{
		"db":   {Name: "db", Role: charm.Consumes, Interface: "mysql"},
		"host": {Name: "host", Role: charm.Consumes, Interface: charm.JujuInfo, Scope: charm.Container},
		"ring": {Name: "ring", Role: charm.Peers, Interface: "ring"},
	}}
	beside := status.RelationDetail{ID: 1, Endpoint: charm.JujuInfo, RelatedEndpoint: "host", Service: "mon"}
	host := status.RelationDetail{ID: 1, Endpoint: "host", RelatedEndpoint: charm.JujuInfo, Service: "web"}
	db := status.RelationDetail{ID: 2, Endpoint: "db", RelatedEndpoint: "server", Service: "mysql"}
	ring := status.RelationDetail{ID: 3, Endpoint: "ring", RelatedEndpoint: "ring", Service: "mon",
		RelatedUnits: map[string]status.RelationData{"mon/1": {}}}
	tests := []struct {
		name      string
		meta      charm.Meta
		relations []status.RelationDetail
		run       status.HookRun
		want      string
	}{
		{"beside a subordinate", principal, []status.RelationDetail{beside}, status.HookRun{Hook: "update-status"}, `
stub mon requires host:juju-info
juju deploy .
juju integrate web:juju-info mon:host
settled

# update-status
juju set-environment update-status-interval=1s
eventually 30s update-status juju hook-history web/0
settled
journal web/0
stdout '^web/0 update-status'
`},
		{"the subordinate has left", principal, nil, status.HookRun{Hook: "juju-info-relation-broken", Relation: "relation-1", Remote: "mon"}, `
stub mon requires host:juju-info
juju deploy .
settled
juju integrate web:juju-info mon:host
settled
# The settings of the other application are not known, because the relation has been removed.

# juju-info-relation-broken mon
juju remove-relation web:juju-info mon:host
settled
journal web/0
stdout '^web/0 juju-info-relation-broken mon'
`},
		{"the beginning of a subordinate", subordinate, []status.RelationDetail{db, host}, status.HookRun{Hook: "install"}, `
stub web

# install
juju deploy .
juju integrate mon:host web:juju-info
settled
journal mon/0
stdout '^mon/0 install'
`},
		{"the beginning of a subordinate whose relation is gone", subordinate, nil, status.HookRun{Hook: "install"}, `
stub web

# install
juju deploy .
juju integrate mon:host web:juju-info
settled
journal mon/0
stdout '^mon/0 install'
`},
		{"the end of a subordinate", subordinate, []status.RelationDetail{host}, status.HookRun{Hook: "stop"}, `
stub web
juju deploy .
juju integrate mon:host web:juju-info
settled

# stop
juju remove-unit web/0
settled
journal mon/0
stdout '^mon/0 stop'
`},
		{"a peer of a subordinate", subordinate, []status.RelationDetail{host, ring}, status.HookRun{Hook: "ring-relation-joined", Relation: "relation-3"}, `
stub web
juju deploy .
juju integrate mon:host web:juju-info
juju add-unit web
settled

# ring-relation-joined
juju add-unit web
settled
journal mon/0
stdout '^mon/0 ring-relation-joined'
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := replay{meta: tt.meta, name: tt.meta.Name + "/0", service: tt.meta.Name, run: tt.run}
			r.unit = status.UnitDetail{Leader: true, Relations: tt.relations}
			if tt.meta.Subordinate {
				r.unit.Principal = "web/0"
			}

			text, err := r.script()
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(string(text), "hidden values.\n")
			if diff := cmp.Diff(tt.want, body); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReplayedHooksHaveTime checks that a script waits longer for hooks that have taken long.
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

// TestReplayOfLongValuesOfAllUnits checks that each unit of the stub gets a value that does not fit on a line, although
// all units have the same settings.
func TestReplayOfLongValuesOfAllUnits(t *testing.T) {
	t.Parallel()
	data := status.RelationData{InScope: true, Data: map[string]string{"key": "line 1\nline 2"}}
	var r replay
	r.writeSettings(status.RelationDetail{
		ID: 3, Endpoint: "db", RelatedEndpoint: "server", Service: "mysql",
		RelatedUnits: map[string]status.RelationData{"mysql/4": data, "mysql/7": data},
	}, unitSide)
	for _, unit := range []string{"mysql/0", "mysql/1"} {
		if want := "juju do --unit " + unit + " relation-set"; !strings.Contains(r.commands.String(), want) {
			t.Errorf("%q is missing:\n%s", want, r.commands.String())
		}
	}
}
