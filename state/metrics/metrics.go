// Package metrics holds the metrics of a process, and writes them for Prometheus. The users of a Registry
// choose what to measure.
package metrics

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Registry holds the values of metrics. Its methods accept labels as pairs of a name and a value. A nil
// Registry ignores all values.
type Registry struct {
	mu     sync.Mutex
	series map[[2]string]*series    // by the metric's name and the labels
	part   atomic.Pointer[Registry] // the registry of the last Replace
}

// series is a metric with one set of labels.
type series struct {
	name, labels string
	kind         string
	value        float64 // the sum for a histogram
	counts       []int   // a histogram's counts by bound; the last is for values above all bounds
}

// NewRegistry returns a registry without values.
func NewRegistry() *Registry { return &Registry{series: map[[2]string]*series{}} }

// changeSeries calls change with the series of the metric and labels, under the registry's lock. It first adds
// the series if the registry does not have it. It does nothing for a nil registry.
func (r *Registry) changeSeries(kind, name string, labels []string, change func(s *series)) {
	if r == nil {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{name, joinLabels(labels)}
	if r.series[key] == nil {
		r.series[key] = &series{name: name, labels: key[1], kind: kind, counts: make([]int, len(bounds)+1)}
	}
	change(r.series[key])
}

// joinLabels returns pairs of a name and a value in the text format: `unit="a/0",state="started"`.
func joinLabels(labels []string) string {
	var pairs []string
	for pair := range slices.Chunk(labels, 2) {
		pairs = append(pairs, pair[0]+`="`+escapeLabel(pair[1])+`"`)
	}
	return strings.Join(pairs, ",")
}

// escapeLabel escapes a label's value for the text format, which has only these three escapes. It replaces bytes
// that are not UTF-8, since Prometheus would otherwise refuse the whole page.
func escapeLabel(value string) string {
	value = strings.ToValidUTF8(value, "\uFFFD")
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)
}

// escapeHelp escapes a line of help, in which quotes need no escape.
func escapeHelp(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(text)
}

// Set sets a gauge.
func (r *Registry) Set(value float64, name string, labels ...string) {
	r.changeSeries("gauge", name, labels, func(s *series) { s.value = value })
}

// Remove removes a gauge.
func (r *Registry) Remove(name string, labels ...string) {
	r.changeSeries("gauge", name, labels, func(s *series) { delete(r.series, [2]string{s.name, s.labels}) })
}

// Add adds n to a counter. With n 0 the counter appears in the output before anything is counted.
func (r *Registry) Add(n int, name string, labels ...string) {
	r.changeSeries("counter", name, labels, func(s *series) { s.value += float64(n) })
}

// bounds are the bounds of all histograms, in seconds. The smallest suits a read of a store in a file, and the
// largest suits a hook that installs packages.
var bounds = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 300, 1800}

// Observe counts a duration in a histogram, and adds it to the histogram's sum.
func (r *Registry) Observe(took time.Duration, name string, labels ...string) {
	r.changeSeries("histogram", name, labels, func(s *series) {
		at, _ := slices.BinarySearch(bounds, took.Seconds())
		s.counts[at]++
		s.value += took.Seconds()
	})
}

// Replace makes Write also write the values of part, instead of those of the registry in the previous call.
func (r *Registry) Replace(part *Registry) {
	if r != nil {
		r.part.Store(part)
	}
}

// Write writes all values in Prometheus's text format, and then those of the registry from the last Replace.
func (r *Registry) Write(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sorted := slices.SortedFunc(maps.Values(r.series), func(a, b *series) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.labels, b.labels))
	})

	last := ""
	for _, s := range sorted {
		if s.name != last {
			if text := Help(s.name); text != "" {
				fmt.Fprintln(w, "# HELP", s.name, escapeHelp(text))
			}
			fmt.Fprintln(w, "# TYPE", s.name, s.kind)
			last = s.name
		}
		s.write(w)
	}

	if part := r.part.Load(); part != nil {
		part.Write(w)
	}
}

// write writes the lines of the series. A histogram has a line for each bucket, which also counts the values of
// all lower buckets, and lines for the sum and the count of all values.
func (s *series) write(w io.Writer) {
	if s.kind != "histogram" {
		writeValue(w, s.name, s.labels, s.value)
		return
	}

	total := 0
	for i, n := range s.counts {
		le := "+Inf"
		if i < len(bounds) {
			le = formatFloat(bounds[i])
		}
		total += n
		// Without other labels, no comma may precede le.
		allLabels := strings.TrimPrefix(s.labels+`,le="`+le+`"`, ",")
		writeValue(w, s.name+"_bucket", allLabels, float64(total))
	}

	writeValue(w, s.name+"_sum", s.labels, s.value)
	writeValue(w, s.name+"_count", s.labels, float64(total))
}

// writeValue writes one line: a name, its labels in braces, and a value.
func writeValue(w io.Writer, name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintln(w, name+labels, formatFloat(value))
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Result returns the value of a label for success or failure.
func Result(succeeded bool) string {
	if succeeded {
		return "done"
	}
	return "failed"
}

// BoolValue returns 1 for true and 0 for false.
func BoolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// UnixSeconds returns the time in the form that Prometheus uses. It returns 0 for the zero time.
func UnixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
