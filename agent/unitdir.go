package agent

import "bijou/agent/uniter"

// UnitDir is a path of a unit's folder below its machine's, by which it is reached whichever
// binary the unit's agent runs: it may be a link.
func UnitDir(machineDir, unit string) string {
	return string(uniter.FolderOf(machineDir, unit).Legacy())
}
