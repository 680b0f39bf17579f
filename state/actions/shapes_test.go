package actions

import (
	"testing"

	"bijou/testscripts/kit/shapes"
)

// TestShapes checks that the table in state/access accepts exactly the records of actions that readers of
// actions can decode.
func TestShapes(t *testing.T) {
	shapes.Check[queue](t, nil, "units/app/0/actions")
	shapes.Check[Action](t, nil, "actions/0")
}
