package tools_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bijou/hookenv/hookapi"
	"bijou/testscripts/conformance/hookapitest"
	"bijou/testscripts/conformance/recorded"
)

func step(argv ...string) recorded.Step { return recorded.Step{Argv: argv} }

// plainSetup returns a hook without a relation in the standard world.
func plainSetup(t *testing.T) recorded.Setup {
	return recorded.Setup{
		World: hookapitest.Standard(), Directory: t.TempDir(),
		Facts: hookapi.Facts{Unit: "wordpress/0", Service: "wordpress", Dialect: hookapi.Modern, Relation: hookapi.NoRelation},
	}
}

func equalBytes() cmp.Option { return cmpopts.EquateEmpty() }
