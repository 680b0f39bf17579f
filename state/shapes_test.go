package state

import (
	"testing"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/shapes"
)

// TestShapesOfAgentsRecords checks that the table in state/access accepts exactly the records that their
// readers can decode. If a record gets a new member, the table must contain the member too.
func TestShapesOfAgentsRecords(t *testing.T) {
	// No agent can change these members of units and machines.
	operators := []string{"machine", "series", "place", "constraints", "principal", "subordinates", "interrupt", "jobs", "instance-id", "placement"}

	shapes.Check[AgentPresence](t, nil, "presence/machine-1", "presence/unit-app-0")
	shapes.Check[keyspace.ClaimRecord](t, nil, "claims/machine-1")
	shapes.Check[keyspace.Presence](t, nil, "leaders/services/app")
	shapes.Check[WorkloadStatus](t, nil, "services/app/status")
	shapes.Check[settingsDoc](t, nil, "services/app/leader-settings", "units/app/0/state", "relations/0/settings/app/0", "relations/0/apps/app")
	shapes.Check[Unit](t, operators, "units/app/0")
	shapes.Check[Restored](t, nil, "units/app/0/restored")
	shapes.Check[Storage](t, nil, "storage/data/0")
	shapes.Check[Machine](t, operators, "machines/1")
	shapes.Check[MachineStorage](t, nil, "machines/1/storage")
	shapes.Check[Member](t, nil, "relations/0/members/app/0")
	shapes.Check[Op](t, nil, "uniters/app/0/op")
	shapes.Check[Workflow](t, nil, "uniters/app/0/workflow")
	shapes.Check[RelationState](t, nil, "uniters/app/0/relations/0")
	shapes.Check[MemberState](t, nil, "uniters/app/0/relations/0/db/0", "uniters/app/0/services/0/db")
	shapes.Check[HookRun](t, nil, "history/app/0/0")
	shapes.Check[Request](t, nil, "requests/app/0/remove")
	shapes.Check[keyspace.BlobHead](t, nil, "blob-heads/00")
}
