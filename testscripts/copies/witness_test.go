package copies

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"bijou/state"
	"bijou/testscripts/judge"
)

// TestWitness is called on a host, where the state can be reached: it prints what the
// record lacks of what the state knows.
func TestWitness(t *testing.T) {
	url := os.Getenv("COPIES_STATE")
	if url == "" {
		t.Skip("it is for a host of TestHosts")
	}
	events, err := judge.Read("/root/merged")
	check(t, err)
	s, err := state.Open(t.Context(), url)
	check(t, err)
	defer s.Close()
	check(t, s.View(t.Context(), func(v *state.View) error {
		end, err := judge.EndOf(v)
		fmt.Printf("witness: %q\n", strings.Join(judge.Missing(end, map[string][]judge.Event{"app/0": events}), "; "))
		return err
	}))
}

// settle waits until all that hooks have done is in the state.
func (p *pair) settle() {
	p.t.Helper()
	p.eventually("the unit has come to rest, and nothing is lost", func() string {
		p.write(0, "/root/merged", "")
		for _, e := range p.all() {
			check(p.t, judge.Append(p.hosts[0].Disk("/root/merged"), e))
		}
		out, err := p.hosts[0].Exec("bash", "-c", "COPIES_STATE='"+p.url+"' /opt/bijou/copies.test -test.run='^TestWitness$' | grep witness:")
		return unless(err == nil && out == "witness: \"\"\n", fmt.Sprint(out, err))
	})
}
