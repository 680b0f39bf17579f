package author

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/author/proof"
	"bijou/state/status"
)

// describeUnsetKeys returns a line for each setting that a hook of the charm reads, and that the other side
// of the hook's relation has not written. The key of such a setting may be misspelt, or the other side may
// write the setting later. Therefore this is useful only if the script has failed. The argument journal is the
// result of formatJournal. describeUnsetKeys returns nil if it cannot read the charm, and leaves out units whose
// state it cannot read.
func (r *scriptRun) describeUnsetKeys(ctx context.Context, journal string) (lines []string) {
	reads, err := proof.Reads(r.work, r.parts.Rules)
	if err != nil || len(reads) == 0 {
		return nil
	}

	for _, dir := range unitDirs("*") {
		unit := unitOf(dir)
		if !runsCharm(unit, r.readCharmName()) {
			continue
		}

		units := map[string]status.UnitDetail{}
		out, err := outputWithin(ctx, r.state, "juju", "show-unit", unit, "--format", "json")
		if err == nil && json.Unmarshal([]byte(out), &units) == nil {
			lines = append(lines, unsetKeys(unit, units[unit].Relations, reads, journal)...)
		}
	}

	return lines
}

// unsetKeys is describeUnsetKeys for one unit. It considers only hooks in the journal, and only relations in
// which the other side has written other settings than its addresses. It leaves out reads of addresses.
func unsetKeys(unit string, relations []status.RelationDetail, reads []proof.Read, journal string) (lines []string) {
	for _, rel := range relations {
		settings := settingsOfOtherSide(rel)
		writtenKeys := slices.DeleteFunc(slices.Sorted(maps.Keys(settings)), isOwnAddress)
		if len(writtenKeys) == 0 {
			continue
		}

		hasRun := func(hook string) bool {
			isOfRelation := strings.HasPrefix(hook, rel.Endpoint+"-relation-")
			// A line of the journal begins with the unit and the hook.
			return isOfRelation && strings.Contains("\n"+journal, "\n"+unit+" "+hook+" ")
		}
		for _, read := range reads {
			_, isWritten := settings[read.Key]
			if isWritten || isOwnAddress(read.Key) {
				continue
			}
			i := slices.IndexFunc(read.Hooks, hasRun)
			if i < 0 {
				continue
			}

			lines = append(lines, fmt.Sprintf("%s %s reads the key %q at %s:%d, which %s has not set; it has set: %s",
				unit, read.Hooks[i], read.Key, read.File, read.Line, rel.Service, strings.Join(writtenKeys, ", ")))
		}
	}

	return lines
}

// settingsOfOtherSide returns the settings of the application and the units at the other end of a relation, in one map.
// If several of them have written a key, the map has only one of the values.
func settingsOfOtherSide(r status.RelationDetail) map[string]string {
	settings := map[string]string{}
	maps.Copy(settings, r.AppData)
	for _, unit := range r.RelatedUnits {
		maps.Copy(settings, unit.Data)
	}
	return settings
}
