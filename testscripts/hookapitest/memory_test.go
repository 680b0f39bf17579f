package hookapitest_test

import (
	"testing"

	"bijou/testscripts/hookapitest"
)

func TestMemory(t *testing.T) { hookapitest.Run(t, hookapitest.OpenMemory) }
