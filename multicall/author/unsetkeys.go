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

// describeUnsetKeys describes the settings that hooks of the charm read, and that the other side of their relation has
// not made. Such a setting can be misspelt, or can belong to a later moment, so this is only for scripts that have
// failed.
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

// unsetKeys is describeUnsetKeys for one unit. It considers the hooks that the journal shows, and relations in which the
// other side has made any settings of its own.
func unsetKeys(unit string, relations []status.RelationDetail, reads []proof.Read, journal string) (lines []string) {
	for _, rel := range relations {
		settings := settingsOfOtherSide(rel)
		made := slices.DeleteFunc(slices.Sorted(maps.Keys(settings)), isOwnAddress)
		if len(made) == 0 {
			continue
		}

		hasRun := func(hook string) bool {
			isOfRelation := strings.HasPrefix(hook, rel.Endpoint+"-relation-")
			return isOfRelation && strings.Contains("\n"+journal, "\n"+unit+" "+hook+" ")
		}
		for _, read := range reads {
			_, isMade := settings[read.Key]
			i := slices.IndexFunc(read.Hooks, hasRun)
			if isMade || isOwnAddress(read.Key) || i < 0 {
				continue
			}

			lines = append(lines, fmt.Sprintf("%s %s reads the key %q at %s:%d, which %s has not set; it has set: %s",
				unit, read.Hooks[i], read.Key, read.File, read.Line, rel.Service, strings.Join(made, ", ")))
		}
	}

	return lines
}

// settingsOfOtherSide returns the settings of the application and the units at the other end of a relation, in one map.
func settingsOfOtherSide(r status.RelationDetail) map[string]string {
	all := map[string]string{}
	maps.Copy(all, r.AppData)
	for _, unit := range r.RelatedUnits {
		maps.Copy(all, unit.Data)
	}
	return all
}
