// Package osutil does with files, locks, mounts and processes what the standard library leaves to
// its callers. Each file has one subject:
//
//	durable.go     directories and symlinks that survive a loss of power
//	file.go        files that do: written beside, synced, renamed, and their directory synced
//	filelock.go    locks that end with the processes that hold them
//	executable.go  files that were just written and will be executed
//	mount.go       directories that others find at a second path
//	procstat.go    /proc/PID/stat, to tell a process from a later one with the same PID
//	untar.go       tar archives, unpacked below one directory
//	digest.go      SHA-256 sums as hexadecimal digits
//
// It knows no environment and no unit, and imports nothing of bijou.
package osutil
