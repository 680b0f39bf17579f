package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bijou/state/access"
	"bijou/state/keyspace"
)

// TestShapesOfAgentsRecords has the table of rights take exactly what the readers of a record can decode: a member
// that is new here must be named there.
func TestShapesOfAgentsRecords(t *testing.T) {
	checkShape[AgentPresence](t, "presence/machine-1", "presence/unit-app-0")
	checkShape[keyspace.ClaimRecord](t, "claims/machine-1")
	checkShape[keyspace.Presence](t, "leaders/services/app")
	checkShape[WorkloadStatus](t, "services/app/status")
	checkShape[settingsDoc](t, "services/app/leader-settings", "units/app/0/state", "relations/0/settings/app/0", "relations/0/apps/app")
	checkShape[Unit](t, "units/app/0")
	checkShape[actionQueue](t, "units/app/0/actions")
	checkShape[Restored](t, "units/app/0/restored")
	checkShape[Action](t, "actions/0")
	checkShape[Storage](t, "storage/data/0")
	checkShape[Machine](t, "machines/1")
	checkShape[MachineStorage](t, "machines/1/storage")
	checkShape[Member](t, "relations/0/members/app/0")
	checkShape[Op](t, "uniters/app/0/op")
	checkShape[Workflow](t, "uniters/app/0/workflow")
	checkShape[RelationState](t, "uniters/app/0/relations/0")
	checkShape[MemberState](t, "uniters/app/0/relations/0/db/0", "uniters/app/0/services/0/db")
	checkShape[HookRun](t, "history/app/0/0")
	checkShape[logHead](t, "logs/app/0", "logs/machine-1")
	checkShape[logBatch](t, "log/app/0/0000000001", "log/machine-1/0000000001")
	checkShape[Request](t, "requests/app/0/remove")
	checkShape[keyspace.BlobHead](t, "blob-heads/00")
}

// operatorsMembers are those of units and machines that no agent can change.
func operatorsMembers() []string {
	return []string{"machine", "series", "place", "constraints", "principal", "subordinates", "interrupt", "jobs", "instance-id", "placement"}
}

func checkShape[T any](t *testing.T, keys ...string) {
	t.Helper()
	record := reflect.TypeFor[T]()
	var without []string
	if record == reflect.TypeFor[Unit]() || record == reflect.TypeFor[Machine]() {
		without = operatorsMembers()
	}

	for _, key := range keys {
		for _, value := range oddValues(record, without) {
			_, err := keyspace.Decode[T](keyspace.KeyValue{Key: key, Value: []byte(value)})
			if taken := access.IsShaped(key, []byte(value)); taken != (err == nil) {
				t.Errorf("%s of %s: the table takes it: %t; its readers: %v", value, key, taken, err)
			}
		}
	}
}

// oddValues returns records with one member each, of every kind of JSON.
func oddValues(record reflect.Type, without []string) (values []string) {
	kinds := []string{`"x"`, `""`, `7`, `-1.5`, `1e400`, `true`, `null`, `[]`, `["x"]`, `[7]`, `[{}]`, `{}`, `{"a":"x"}`, `{"a":7}`, `{"1":"x"}`, `"2026-01-02T03:04:05Z"`}

	for i := range record.NumField() {
		f := record.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			values = append(values, oddValues(f.Type, without)...)
			continue
		case name == "" || name == "-" || slices.Contains(without, name):
			continue
		}

		for _, kind := range kinds {
			values = append(values, fmt.Sprintf(`{%q:%s}`, name, kind), fmt.Sprintf(`{%q:%s}`, strings.ToUpper(name), kind))
		}
		for _, below := range oddMembers(f.Type) {
			values = append(values, fmt.Sprintf(`{%q:%s}`, name, below))
		}
	}

	return values
}

func oddMembers(member reflect.Type) (values []string) {
	_, decodesItself := reflect.PointerTo(member).MethodByName("UnmarshalJSON")
	switch {
	case member.Kind() == reflect.Pointer:
		return oddMembers(member.Elem())
	case member.Kind() == reflect.Slice:
		for _, value := range oddMembers(member.Elem()) {
			values = append(values, "["+value+"]")
		}
	case member.Kind() == reflect.Struct && !decodesItself:
		return oddValues(member, nil)
	}

	return values
}
