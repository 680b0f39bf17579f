package access_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/access"
	"bijou/state/keys"
)

// TestShow checks which part of the environment's record agents see.
func TestShow(t *testing.T) {
	const whole = `{
		"name": "default", "provider": "nspawn", "incarnation": 12345678901234567890, "newer": {"a": [1]},
		"config": {
			"retry-hooks": "false", "charm-http-proxy": "http://proxy", "nspawn.confined": "true",
			"nspawn.apt-repository": "https://user:password@host", "ssh.identity": "/home/me/key", "NSPAWN.x.y": "1"
		}
	}`
	for _, c := range []struct {
		name  string
		id    access.Identity
		key   string
		value string
		want  string
	}{
		{"an agent", access.Agent("1"), keys.Environment, whole, `{
			"name": "default", "provider": "nspawn", "incarnation": 12345678901234567890, "newer": {"a": [1]},
			"config": {"retry-hooks": "false", "charm-http-proxy": "http://proxy", "nspawn.confined": "true"}
		}`},
		{"an operator", access.Operator(), keys.Environment, whole, whole},
		{"another key", access.Agent("1"), keys.Unit("one/0"), whole, whole},
		{"a member in another spelling", access.Agent("1"), keys.Environment, `{"Config": {"ssh.pool": "a"}}`, `{"Config": {}}`},
		{"without settings", access.Agent("1"), keys.Environment, `{"name": "x"}`, `{"name": "x"}`},
		{"damaged", access.Agent("1"), keys.Environment, `{"config": {"ssh.pool": "a"`, ""},
		{"settings of another form", access.Agent("1"), keys.Environment, `{"config": ["ssh.pool"]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := access.Show(c.id, c.key, []byte(c.value))
			if diff := cmp.Diff(decoded(t, c.want), decoded(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if text == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
