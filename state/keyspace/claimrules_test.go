package keyspace

import (
	"strings"
	"testing"
)

// TestDecideClaim checks which processes can get a claim that has or had a holder: only a process in the same
// place whose predecessor is gone, even if its directory was moved.
func TestDecideClaim(t *testing.T) {
	holder := Holder{Host: "h", Folder: "/var/lib/neco", Boot: "b1", PIDNamespace: "n", PID: 1, Start: "10"}
	another := func(change func(c *Claimant)) Claimant {
		c := Claimant{Holder: holder, Lives: func(Holder) bool { return false }}
		c.PID, c.Start = 2, "20"
		change(&c)
		return c
	}
	moved := func(c *Claimant) {
		c.Folder = "/data/neco"
		c.Moved = func(folder string) bool { return folder == "/var/lib/neco" }
	}

	for what, tt := range map[string]struct {
		by   Claimant
		want claimVerdict
		why  string
	}{
		"the next process":               {another(func(*Claimant) {}), claimGranted, ""},
		"while it lives":                 {another(func(c *Claimant) { c.Lives = func(Holder) bool { return true } }), claimRefused, "which is still running"},
		"another folder":                 {another(func(c *Claimant) { c.Folder = "/data/neco" }), claimRefused, "the claim is held by"},
		"its folder was moved":           {another(moved), claimGranted, ""},
		"moved, while it lives":          {another(func(c *Claimant) { moved(c); c.Lives = func(Holder) bool { return true } }), claimRefused, "which is still running"},
		"moved, and the host has booted": {another(func(c *Claimant) { moved(c); c.Boot = "b2" }), claimDoubtful, ""},
		"moved, in another namespace":    {another(func(c *Claimant) { moved(c); c.PIDNamespace = "m" }), claimDoubtful, ""},
		"moved, on another host":         {another(func(c *Claimant) { moved(c); c.Host = "g" }), claimRefused, "the claim is held by"},
		"not moved, but another folder":  {another(func(c *Claimant) { moved(c); c.Moved = func(string) bool { return false } }), claimRefused, "the claim is held by"},
	} {
		t.Run(what, func(t *testing.T) {
			v, why := ClaimRecord{Epoch: 1, Holder: &holder}.decide(tt.by)
			if v != tt.want || !strings.Contains(why, tt.why) {
				t.Errorf("%d: %q, want %d: %q", v, why, tt.want, tt.why)
			}
		})
	}
}
