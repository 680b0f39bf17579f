package updater

import (
	"fmt"
	"strings"
	"time"
)

// exposition is metrics in Prometheus's text format.
type exposition struct{ strings.Builder }

// addMetric adds one; those of a name follow one another, and the first has the help.
func (b *exposition) addMetric(kind, name, help, labels string, value int64) {
	if help != "" {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	fmt.Fprintf(b, "%s%s %d\n", name, labels, value)
}

func boolValue(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
