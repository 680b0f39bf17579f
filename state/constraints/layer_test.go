package constraints

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

func TestOver(t *testing.T) {
	for _, test := range []struct{ base, over, want string }{
		{"", "", ""},
		{"mem=1G", "", "mem=1024M"},
		{"", "mem=1G", "mem=1024M"},
		{"mem=1G cores=2", "mem=3G arch=amd64", "arch=amd64 cpu-cores=2 mem=3072M"},
		{"mem=1G cores=2", "mem=", "cpu-cores=2 mem="},
		{"mem=", "cores=2", "cpu-cores=2 mem="},
		{"tags=a,b", "tags=^c", "tags=^c"},
		{"tags=a,b", "tags=", "tags="},
		{"mem=1G cores=2 cpu-power=3 root-disk=4 arch=amd64 tags=a", "instance-type=m1", "arch=amd64 instance-type=m1 tags=a"},
		{"instance-type=m1 arch=amd64", "mem=1G", "arch=amd64 mem=1024M"},
		{"instance-type=m1", "cores=1", "cpu-cores=1"},
		{"instance-type=m1", "cpu-power=1", "cpu-power=1"},
		{"instance-type=m1", "root-disk=1", "root-disk=1M"},
		{"instance-type=m1", "tags=a", "instance-type=m1 tags=a"},
		{"instance-type=m1", "mem=", "instance-type=m1 mem="},
		{"mem=1G", "instance-type=", "instance-type= mem=1024M"},
	} {
		if got := parse(t, test.over).Over(parse(t, test.base)).String(); got != test.want {
			t.Errorf("%q over %q is %q, want %q", test.over, test.base, got, test.want)
		}
	}
}

func TestSatisfied(t *testing.T) {
	h := Hardware{Arch: "amd64", CPUCores: 4, Mem: 4096, Tags: []string{"ssd", "rack-2"}}
	for _, test := range []struct {
		asked string
		unmet []string
	}{
		{"", nil},
		{"mem=4G cores=4 arch=amd64 tags=ssd,^old", nil},
		{"mem=4097M cores=5 arch=arm64", []string{"arch=arm64", "cpu-cores=5", "mem=4097M"}},
		{"mem= cores= arch= tags= instance-type= root-disk= container= cpu-power=", nil},
		{"root-disk=1 instance-type=", []string{"root-disk=1M"}},
		{"instance-type=m1 container=lxc cpu-power=", []string{"container=lxc", "instance-type=m1"}},
		{"tags=ssd,big", []string{"tags=ssd,big"}},
		{"tags=^ssd", []string{"tags=^ssd"}},
	} {
		v := parse(t, test.asked)
		if d := cmp.Diff(test.unmet, v.Unmet(h)); d != "" || v.SatisfiedBy(h) != (len(test.unmet) == 0) {
			t.Errorf("%q (-want +got):\n%s", test.asked, d)
		}
	}
}

func TestSatisfies(t *testing.T) {
	for _, test := range []struct {
		made, asked string
		want        bool
	}{
		{"", "", true},
		{"", "mem= tags=", true},
		{"mem=4G", "mem=2G", true},
		{"mem=2G", "mem=4G", false},
		{"", "mem=1M", false},
		{"mem=4G", "", true},
		{"instance-type=m1", "mem=1M", false},
		{"instance-type=m1", "instance-type=m1", true},
		{"tags=a,b", "tags=a", true},
		{"tags=a", "tags=^b", false}, // the created tree may also have b
		{"tags=a,^b", "tags=^b", true},
	} {
		if got := parse(t, test.made).Satisfies(parse(t, test.asked)); got != test.want {
			t.Errorf("what was made for %q satisfies %q: %t", test.made, test.asked, got)
		}
	}
}

func TestAsks(t *testing.T) {
	for text, want := range map[string]bool{"": false, "mem= tags= arch=": false, "mem=1": true, "tags=a": true, "tags=^a": true, "container=lxc": true} {
		t.Run(text, func(t *testing.T) {
			if got := parse(t, text).AsksAnything(); got != want {
				t.Errorf("%q asks: %t", text, got)
			}
		})
	}
}

// TestProperties checks laws that all sets of constraints must obey.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		a, b, c := random(r), random(r), random(r)
		layered := a.Over(b)
		again, err := Parse(layered.String())
		if err != nil || !cmp.Equal(again, layered) {
			t.Fatalf("%q over %q is %q, and read again %q: %v", a, b, layered, again, err)
		}
		if !cmp.Equal(a.Over(Value{}), a) || !cmp.Equal(Value{}.Over(a), a) || !cmp.Equal(a.Over(a), a) {
			t.Fatalf("%q changes over or under nothing, or itself", a)
		}
		if !a.Satisfies(a) || !layered.Satisfies(a) || a.SatisfiedBy(Hardware{}) && a.AsksAnything() && len(a.excludedTags()) == 0 {
			t.Fatalf("%q over %q does not satisfy it", a, b)
		}
		if a.InstanceType != nil || b.InstanceType != nil || c.InstanceType != nil {
			continue // if constraints are cleared, the result depends on the order
		}
		if !cmp.Equal(a.Over(b).Over(c), a.Over(b.Over(c))) {
			t.Fatalf("%q over %q over %q depends on the order", a, b, c)
		}
	}
}

func TestEncodings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		want := random(r)
		var asJSON, asYAML Value
		text, err := json.Marshal(want)
		if err != nil || json.Unmarshal(text, &asJSON) != nil || !cmp.Equal(asJSON, want) {
			t.Fatalf("%q: %s, %v", want, text, err)
		}
		if text, err = yaml.Marshal(want); err != nil || yaml.Unmarshal(text, &asYAML) != nil || !cmp.Equal(asYAML, want) {
			t.Fatalf("%q: %s, %v", want, text, err)
		}
	}
}

func parse(t testing.TB, text string) Value {
	t.Helper()
	v, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// random returns a random set of constraints.
func random(r *rand.Rand) (v Value) {
	for _, try := range []struct {
		name   string
		values []string
	}{
		{"arch", []string{"", "amd64", "arm64"}}, {"container", []string{"", "lxc"}}, {"cpu-cores", []string{"", "1", "2"}},
		{"cpu-power", []string{"", "100"}}, {"mem", []string{"", "1G", "2G"}}, {"root-disk", []string{"", "8G", "9G"}},
		{"tags", []string{"", "a", "a,^b", "^b,c"}}, {"instance-type", []string{"", "m1"}},
	} {
		part := try.name + "=" + try.values[r.IntN(len(try.values))]
		if r.IntN(2) == 0 {
			continue
		}
		with, err := Parse(v.String() + " " + part)
		if err == nil {
			v = with
		}
	}
	return v
}
