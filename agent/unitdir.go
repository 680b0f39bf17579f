package agent

import "bijou/agent/uniter"

// UnitDir is the folder of a unit below its machine's.
func UnitDir(machineDir, unit string) string { return string(uniter.FolderOf(machineDir, unit)) }
