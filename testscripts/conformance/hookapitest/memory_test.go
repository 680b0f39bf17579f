package hookapitest_test

import (
	"testing"

	"bijou/testscripts/conformance/hookapitest"
)

func TestMemory(t *testing.T) { hookapitest.Run(t, hookapitest.OpenMemory) }
