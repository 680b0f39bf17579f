// Package metrics writes what Prometheus reads.
package metrics

import (
	"fmt"
	"strings"
	"time"
)

// Exposition is a text in Prometheus's exposition format.
type Exposition struct{ strings.Builder }

// Add appends a metric. It wants the metrics of one name to follow one another, the first with the help.
func (b *Exposition) Add(kind, name, help, labels string, value int64) {
	if help != "" {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	fmt.Fprintf(b, "%s%s %d\n", name, labels, value)
}

// BoolValue returns 1 for true.
func BoolValue(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// UnixSeconds returns the time as Prometheus has it; 0 for none.
func UnixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
