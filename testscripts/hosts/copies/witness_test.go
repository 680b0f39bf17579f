package copies

import (
	"path/filepath"
	"testing"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
)

// TestWitness is the part of the test that runs on a host.
func TestWitness(t *testing.T) { judge.Witness(t) }

// settle waits until the results of all hooks are in the state.
func (p *pair) settle() {
	p.t.Helper()
	const merged = "/root/records/app-0"
	p.eventually("the unit has come to rest, and nothing is lost", func() string {
		p.write(0, merged, "")
		for _, e := range p.all() {
			check(p.t, judge.Append(p.hosts[0].Disk(merged), e))
		}
		out, err := p.hosts[0].Shell(judge.WitnessLine("/opt/bijou/copies.test", p.url, filepath.Dir(merged)))
		return await.Unless(err == nil && out == judge.NothingMissing, "%s%v", out, err)
	})
}
