package constraints

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzConstraints(f *testing.F) {
	for _, seed := range []string{
		"mem=2G cores=2", "mem=1.5G root-disk=.1T cpu-power=400 arch=amd64 container=lxc tags=a,^b",
		"instance-type=m1.large mem=", "tags= arch=", "mem=9007199254740992", "mem=1e3", "=", "a=\x00",
	} {
		f.Add(seed, "mem=1G")
	}
	f.Fuzz(func(t *testing.T, text, base string) {
		v, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(v.String())
		if err != nil || !cmp.Equal(v, again) || v.String() != again.String() {
			t.Fatalf("%q is %q, and that is %q: %v", text, v, again, err)
		}
		if !v.Satisfies(v) || !cmp.Equal(v.Over(Value{}), v) {
			t.Fatalf("%q satisfies not itself", v)
		}
		b, err := Parse(base)
		if err != nil {
			return
		}
		layered := v.Over(b)
		if _, err := Parse(layered.String()); err != nil || !layered.Satisfies(v) {
			t.Fatalf("%q over %q is %q: %v", v, b, layered, err)
		}
	})
}
