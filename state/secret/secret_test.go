package secret

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func TestIDs(t *testing.T) {
	id := NewID(noon)
	if later := NewID(noon.Add(time.Second)); len(id) != 20 || id >= later {
		t.Errorf("ids %q and %q: want 20 characters, in order", id, later)
	}
	for _, text := range []string{id, Scheme + id, Scheme + "//uuid/" + id} {
		if got, err := ParseID(text); err != nil || got != id {
			t.Errorf("ParseID(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "secret:", "secret://", "secret:x", id + "0", "secret:../../" + id, strings.ToUpper(id), "secret://uuid"} {
		if got, err := ParseID(text); err == nil {
			t.Errorf("ParseID(%q) = %q", text, got)
		}
	}
}

func TestContent(t *testing.T) {
	for key, ok := range map[string]bool{
		"abc": true, "a1b": true, "a-b-c": true, "ab": false, "": false, "Abc": false, "1bc": false, "-abc": false, "abc-": false,
		"a--bc": false, "a_b": false, "a.b": false, "a-b": false,
	} {
		t.Run(key, func(t *testing.T) {
			if isKey(key) != ok {
				t.Errorf("isKey(%q): want %v", key, ok)
			}
		})
	}
	c := Content{}
	read := func(path string) ([]byte, error) { return []byte("of " + path), nil }
	for key, value := range map[string]string{"text": "a=b", "bytes#base64": "AP8=", "lines#file": "x"} {
		t.Run(key, func(t *testing.T) {
			if err := c.Add(key, value, read); err != nil {
				t.Error(err)
			}
		})
	}
	if want := (Content{"text": []byte("a=b"), "bytes": {0, 255}, "lines": []byte("of x")}); !c.Equal(want) || c.Check() != nil {
		t.Errorf("got %q", c)
	}
	for key, value := range map[string]string{"bytes#base64": "s3cr3t!", "text#zip": "s3cr3t", "No": "s3cr3t"} {
		t.Run(key, func(t *testing.T) {
			if err := c.Add(key, value, read); err == nil || strings.Contains(err.Error(), "s3cr3t") {
				t.Error(err)
			}
		})
	}
	if (Content{}).Check() == nil || (Content{"big": make([]byte, MaxContent)}).Check() == nil {
		t.Error("no content, or too much, is none")
	}
}

func TestPolicies(t *testing.T) {
	for policy, want := range map[string]string{
		"never": "0001-01-01T00:00:00Z", "": "0001-01-01T00:00:00Z", "hourly": "2026-01-31T13:00:00Z", "daily": "2026-02-01T12:00:00Z",
		"weekly": "2026-02-07T12:00:00Z", "monthly": "2026-03-03T12:00:00Z", "quarterly": "2026-05-01T12:00:00Z", "yearly": "2027-01-31T12:00:00Z",
		"sometimes": "",
	} {
		t.Run(policy, func(t *testing.T) {
			got, err := NextRotation(policy, noon)
			if (err == nil) != (want != "") || err == nil && got.Format(time.RFC3339) != want {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		})
	}
	for text, want := range map[string]string{
		"90m": "2026-01-31T13:30:00Z", "2026-02-01": "2026-02-01T00:00:00Z", "2026-02-01T10:00:00+02:00": "2026-02-01T08:00:00Z",
		"0s": "", "-1h": "", "soon": "", "": "",
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseExpiry(text, noon)
			if (err == nil) != (want != "") || err == nil && got.Format(time.RFC3339) != want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	r := Record{ID: "x", Owner: Owner{Service: "db"}}
	r.AddRevision(noon)
	r.SetExpiry(noon.Add(time.Hour))
	r.AddRevision(noon)
	if r.Latest != 2 || !r.Revisions[2].Expires.IsZero() || r.Revisions[1].DueAt.IsZero() {
		t.Errorf("an expiry is of its revision alone: %+v", r.Revisions)
	}
	r.AddGrant(Grant{1, "web", "web/0"})
	r.AddGrant(Grant{1, "web", ""})
	r.AddGrant(Grant{1, "web", "web/1"})
	r.AddGrant(Grant{2, "web", "web/1"})
	if want := []Grant{{1, "web", ""}, {2, "web", "web/1"}}; !slices.Equal(r.Grants, want) {
		t.Errorf("grants %+v, want %+v", r.Grants, want)
	}
	only := func(relation int) func(string, Grant) bool {
		return func(_ string, g Grant) bool { return g.Relation == relation }
	}
	for _, c := range []struct {
		unit     string
		relation int
		want     bool
	}{{"db/7", 9, true}, {"dbx/7", 1, false}, {"web/0", 1, true}, {"web/0", 2, false}, {"web/1", 2, true}, {"web/1", 3, false}, {"webx/1", 1, false}} {
		if r.IsReadableBy(c.unit, only(c.relation)) != c.want {
			t.Errorf("%s by relation %d: want %v", c.unit, c.relation, c.want)
		}
	}
	r.Track("web/0", 1, "mine")
	if got := r.Untracked(only(1)); len(got) != 0 {
		t.Errorf("untracked %v while web/0 reads 1", got)
	}
	if got := r.Untracked(only(3)); !slices.Equal(got, []int{1}) {
		t.Errorf("untracked %v once web/0 may not read it any more", got)
	}
	if r.Track("web/0", 2, ""); r.LabelFor("web/0") != "mine" {
		t.Error("a label is lost")
	}
	r.RemoveGrants(Grant{Relation: NoRelation, Unit: "web/1"})
	if want := []Grant{{1, "web", ""}}; !slices.Equal(r.Grants, want) {
		t.Errorf("grants %+v, want %+v", r.Grants, want)
	}
}

func TestSealing(t *testing.T) {
	a, b := NewKey(), NewKey()
	r := Record{ID: "x", Origin: "uuid"}
	sealed, err := Keyring{a}.Seal(&r, 1, Content{"password": []byte("s3cr3t")})
	if err != nil || strings.Contains(string(sealed.Data), "s3cr3t") {
		t.Fatal(err)
	}
	if c, err := (Keyring{a, b}).Open(&r, 1, sealed); err != nil || string(c["password"]) != "s3cr3t" {
		t.Errorf("got %q, %v", c, err)
	}
	again, _ := Keyring{b, a}.Seal(&r, 1, Content{"password": []byte("s3cr3t")})
	if again.Key != a.ID || string(again.Data) == string(sealed.Data) {
		t.Error("the newest key seals, never twice alike")
	}
	for _, other := range []Record{{ID: "y", Origin: "uuid"}, {ID: "x", Origin: "other"}} {
		if _, err := (Keyring{a}).Open(&other, 1, sealed); err == nil {
			t.Errorf("what was sealed for %+v opens as that of %+v", r, other)
		}
	}
	if _, err := (Keyring{a}).Open(&r, 2, sealed); err == nil {
		t.Error("what was sealed as revision 1 opens as 2")
	}
	if _, err := (Keyring{b}).Open(&r, 1, sealed); !errors.Is(err, ErrNoKey) {
		t.Errorf("another key: %v", err)
	}
	for _, data := range [][]byte{nil, sealed.Data[:10], sealed.Data[:len(sealed.Data)-1]} {
		if _, err := (Keyring{a}).Open(&r, 1, Sealed{Key: a.ID, Data: data}); err == nil {
			t.Error("what was cut off opens")
		}
	}
	if _, err := (Keyring{}).Seal(&r, 1, nil); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	if _, err := (Keyring{{ID: a.ID, Key: "s3cr3t"}}).Open(&r, 1, sealed); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a damaged key: %v", err)
	}
}
