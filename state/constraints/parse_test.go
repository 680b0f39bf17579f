package constraints

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func p[T any](v T) *T { return &v }

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want Value
		as   string // the printed form; empty if it is equal to the input
	}{
		{"", Value{}, ""},
		{" \t\n ", Value{}, "-"},
		{"mem=2G", Value{Mem: p[uint64](2048)}, "mem=2048M"},
		{"mem=1.5G", Value{Mem: p[uint64](1536)}, "mem=1536M"},
		{"mem=512", Value{Mem: p[uint64](512)}, "mem=512M"},
		{"mem=.1M", Value{Mem: p[uint64](1)}, "mem=1M"},
		{"mem=1.M", Value{Mem: p[uint64](1)}, "mem=1M"},
		{"root-disk=1T", Value{RootDisk: p[uint64](1 << 20)}, "root-disk=1048576M"},
		{"root-disk=1P mem=1.0009G", Value{RootDisk: p[uint64](1 << 30), Mem: p[uint64](1025)}, "mem=1025M root-disk=1073741824M"},
		{"cores=4", Value{CPUCores: p[uint64](4)}, "cpu-cores=4"},
		{"cpu-cores=4", Value{CPUCores: p[uint64](4)}, ""},
		{"cpu-power=0", Value{CPUPower: p[uint64](0)}, "cpu-power="},
		{"arch=riscv64 container=lxc", Value{Arch: p("riscv64"), Container: p("lxc")}, ""},
		{"instance-type=m1.large mem=", Value{InstanceType: p("m1.large"), Mem: p[uint64](0)}, ""},
		{"instance-type= mem=1M", Value{InstanceType: p(""), Mem: p[uint64](1)}, ""},
		{"tags=ssd,^old,rack-2", Value{Tags: p([]string{"ssd", "^old", "rack-2"})}, ""},
		{"tags= arch= container=", Value{Tags: p([]string{}), Arch: p(""), Container: p("")}, "arch= container= tags="},
	} {
		got, err := Parse(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, d)
		}
		want := test.as
		switch want {
		case "":
			want = test.text
		case "-":
			want = ""
		}
		if got.String() != want {
			t.Errorf("%q is printed as %q, want %q", test.text, got.String(), want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const float = "must be a non-negative float with optional M/G/T/P suffix"
	for text, want := range map[string]string{
		"cheese":                       `malformed constraint "cheese"`,
		"=2G":                          `malformed constraint "=2G"`,
		"mem=1G 2G":                    `malformed constraint "2G"`,
		"cheese=edam":                  `unknown constraint "cheese"`,
		"Mem=1G":                       `unknown constraint "Mem"`,
		"mem=-1":                       `bad "mem" constraint: ` + float,
		"mem=+1":                       `bad "mem" constraint: ` + float,
		"mem=G":                        `bad "mem" constraint: ` + float,
		"mem=.":                        `bad "mem" constraint: ` + float,
		"mem=1g":                       `bad "mem" constraint: ` + float,
		"mem=1GB":                      `bad "mem" constraint: ` + float,
		"mem=inf":                      `bad "mem" constraint: ` + float,
		"mem=nan":                      `bad "mem" constraint: ` + float,
		"mem=0x1p4":                    `bad "mem" constraint: ` + float,
		"root-disk=lots":               `bad "root-disk" constraint: ` + float,
		"root-disk=99999999P":          `bad "root-disk" constraint: "99999999P" is too much`,
		"mem=1G mem=1G":                `bad "mem" constraint: already set`,
		"mem= mem=1G":                  `bad "mem" constraint: already set`,
		"cpu-cores=1 cores=2":          `bad "cores" constraint: already set`,
		"tags= tags=a":                 `bad "tags" constraint: already set`,
		"cpu-cores=-1":                 `bad "cpu-cores" constraint: must be a non-negative integer`,
		"cpu-power=1.5":                `bad "cpu-power" constraint: must be a non-negative integer`,
		"arch=sparc":                   `bad "arch" constraint: "sparc" is not one of amd64, arm64, armhf, i386, ppc64el, riscv64, s390x`,
		"tags=a,,b":                    `bad "tags" constraint: "" must have only letters and digits, and between them any of ._/+:-`,
		"tags=^":                       `bad "tags" constraint: "" must have only letters and digits, and between them any of ._/+:-`,
		"tags=b,^a,a":                  `bad "tags" constraint: "a" is both required and excluded`,
		"container=\x1b[31m":           `bad "container" constraint: "\x1b[31m" must have only letters and digits, and between them any of ._/+:-`,
		"instance-type=m1 mem=2G":      `ambiguous constraints: "instance-type" overlaps with "mem"`,
		"root-disk=1G instance-type=x": `ambiguous constraints: "instance-type" overlaps with "root-disk"`,
		"cpu-power=1 instance-type=x":  `ambiguous constraints: "instance-type" overlaps with "cpu-power"`,
		"cores=1 instance-type=x":      `ambiguous constraints: "instance-type" overlaps with "cpu-cores"`,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Parse(text)
			if err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if got != (Value{}) {
				t.Errorf("%q is refused, and is %v", text, got)
			}
		})
	}
}
