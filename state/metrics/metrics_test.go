package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWrite checks that each kind of metric is written in Prometheus' format, and that replaced or removed
// metrics are not written.
func TestWrite(t *testing.T) {
	r := NewRegistry()
	r.Set(2, "units", "unit", "x/1", "state", `a "b"`)
	r.Set(1, "units", "unit", "x/10")
	r.Set(1.5, "units", "unit", "y/0")
	r.Set(1, "bijou_provisioner_leader")
	r.Add(0, "tries_total")
	r.Add(1, "tries_total", "result", Result(true))
	r.Observe(5*time.Millisecond, "hooks_seconds", "hook", "start")
	r.Observe(time.Hour, "hooks_seconds", "hook", "start")
	r.Remove("units", "unit", "y/0")
	r.Remove("units", "unit", "none")
	for value := range 2 {
		part := NewRegistry()
		part.Set(float64(value), "fleet", "lrn", strings.Repeat("1", 2-value))
		r.Replace(part)
	}
	var none *Registry
	none.Set(1, "units")
	none.Add(1, "units")
	none.Remove("units")
	none.Observe(1, "units")
	none.Replace(r)
	var text strings.Builder
	r.Write(&text)
	want := `# HELP bijou_provisioner_leader 1 while this provisioner leads.
# TYPE bijou_provisioner_leader gauge
bijou_provisioner_leader 1
# TYPE hooks_seconds histogram
hooks_seconds_bucket{hook="start",le="0.001"} 0
hooks_seconds_bucket{hook="start",le="0.005"} 1
hooks_seconds_bucket{hook="start",le="0.025"} 1
hooks_seconds_bucket{hook="start",le="0.1"} 1
hooks_seconds_bucket{hook="start",le="0.5"} 1
hooks_seconds_bucket{hook="start",le="2.5"} 1
hooks_seconds_bucket{hook="start",le="10"} 1
hooks_seconds_bucket{hook="start",le="60"} 1
hooks_seconds_bucket{hook="start",le="300"} 1
hooks_seconds_bucket{hook="start",le="1800"} 1
hooks_seconds_bucket{hook="start",le="+Inf"} 2
hooks_seconds_sum{hook="start"} 3600.005
hooks_seconds_count{hook="start"} 2
# TYPE tries_total counter
tries_total 0
tries_total{result="done"} 1
# TYPE units gauge
units{unit="x/1",state="a \"b\""} 2
units{unit="x/10"} 1
# TYPE fleet gauge
fleet{lrn="1"} 1
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

// TestLabels checks that any text in a label's value is written in Prometheus' format.
func TestLabels(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"plain", "blog/0", `blog/0`},
		{"a quote", `a "b"`, `a \"b\"`},
		{"a backslash", `C:\x`, `C:\\x`},
		{"a newline", "one\ntwo", `one\ntwo`},
		{"a backslash before a newline", "\\\n", `\\\n`},
		{"other letters", "Müller 雪", `Müller 雪`},
		{"a tab, and an escape", "a\tb\x1b", "a\tb\x1b"},
		{"what is no UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := NewRegistry()
			r.Set(1, "x", "label", test.value)
			var text strings.Builder
			r.Write(&text)
			if diff := cmp.Diff("# TYPE x gauge\nx{label=\""+test.want+"\"} 1\n", text.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEscapeHelp(t *testing.T) {
	if got, want := escapeHelp("say \"a\\b\"\nthen c"), `say "a\\b"\nthen c`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
