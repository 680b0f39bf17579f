package updater

import (
	"fmt"
	"strings"
	"time"
)

// exposition is a text in Prometheus's exposition format.
type exposition struct{ strings.Builder }

// addMetric wants the metrics of one name to follow one another, the first with the help.
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
