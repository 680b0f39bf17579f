package logs

import (
	"testing"

	"bijou/testscripts/kit/shapes"
)

// TestShapes checks that the table in state/access accepts exactly the log records that readers of the log
// can decode.
func TestShapes(t *testing.T) {
	shapes.Check[logHead](t, nil, "logs/app/0", "logs/machine-1")
	shapes.Check[logBatch](t, nil, "log/app/0/0000000001", "log/machine-1/0000000001")
}
