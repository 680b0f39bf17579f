package nspawn

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/provision/provider"
)

func TestChoose(t *testing.T) {
	a, b := newProvider(t, nil), newProvider(t, nil)
	if a.bridgeName() == b.bridgeName() || len(a.bridgeName()) > 15 {
		t.Errorf("bridges %s, %s", a.bridgeName(), b.bridgeName())
	}
	n, err := a.chooseNetwork()
	if err != nil || n.Subnet.Bits() != 24 || !netip.MustParsePrefix("10.64.0.0/10").Overlaps(n.Subnet) {
		t.Errorf("network %v, %v", n.Subnet, err)
	}
	for _, c := range []struct{ asked, want string }{
		{"10.7.7.0/24", ""},
		{"10.7.7.0/16", "want one like"},
		{"x", "want one like"},
		{"127.0.0.0/24", "choose another"},
	} {
		t.Run(c.asked, func(t *testing.T) {
			n, err := newProvider(t, map[string]string{"network": c.asked}).chooseNetwork()
			if c.want == "" && (err != nil || n.Subnet.String() != c.asked) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: network %v, error %v", c.asked, n.Subnet, err)
			}
		})
	}
}

func TestParseRoute(t *testing.T) {
	if p, ok := parseRoute("0002000A", "00FFFFFF"); !ok || p.String() != "10.0.2.0/24" {
		t.Errorf("%v %v", p, ok)
	}
	if p, ok := parseRoute("Destination", "Mask"); ok {
		t.Errorf("a headline is %v", p)
	}
}

// TestAddresses checks that addresses are assigned in order, and that an address in use is skipped.
func TestAddresses(t *testing.T) {
	p := newProvider(t, nil)
	n := network{Subnet: netip.MustParsePrefix("10.70.0.0/24")}
	for _, want := range []string{"10.70.0.10", "10.70.0.11"} {
		a, err := p.nextAddress(n)
		if err != nil || a.String() != want {
			t.Fatalf("%s, %v; want %s", a, err, want)
		}
		n.Last = a
	}
	dir := filepath.Join(p.dir, p.instanceID("7"))
	if err := errors.Join(os.MkdirAll(dir, 0o700), provider.Record{Machine: "7", Address: "10.70.0.10"}.Write(dir)); err != nil {
		t.Fatal(err)
	}
	n.Last = n.addressAt(lastHost)
	if a, err := p.nextAddress(n); err != nil || a.String() != "10.70.0.11" {
		t.Errorf("%s, %v", a, err)
	}
}
