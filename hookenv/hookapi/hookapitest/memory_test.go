package hookapitest_test

import (
	"testing"

	"bijou/hookenv/hookapi/hookapitest"
)

func TestMemory(t *testing.T) { hookapitest.Run(t, hookapitest.OpenMemory) }
