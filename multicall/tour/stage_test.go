package tour

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithout(t *testing.T) {
	got := withoutVars([]string{"HOME=/h", "JUJU_ENV=x", "BIJOU_HOME=y", "BIJOU_HOMEX=z"}, "JUJU_", "BIJOU_HOME=")
	if diff := cmp.Diff([]string{"HOME=/h", "BIJOU_HOMEX=z"}, got); diff != "" {
		t.Error(diff)
	}
}
