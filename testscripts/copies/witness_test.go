package copies

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"bijou/testscripts/await"
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
	lack, err := judge.MissingFrom(t.Context(), url, map[string][]judge.Event{"app/0": events})
	check(t, err)
	fmt.Printf("witness: %q\n", strings.Join(lack, "; "))
}

// settle waits until all that hooks have done is in the state.
func (p *pair) settle() {
	p.t.Helper()
	p.eventually("the unit has come to rest, and nothing is lost", func() string {
		p.write(0, "/root/merged", "")
		for _, e := range p.all() {
			check(p.t, judge.Append(p.hosts[0].Disk("/root/merged"), e))
		}
		out, err := p.hosts[0].Shell("COPIES_STATE='" + p.url + "' /opt/bijou/copies.test -test.run='^TestWitness$' | grep witness:")
		return await.Unless(err == nil && out == "witness: \"\"\n", "%s%v", out, err)
	})
}
