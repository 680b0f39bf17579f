// Package osutil complements the standard library for files, locks, mounts and processes. Its files are:
//
//	file.go        files and symlinks that survive a power loss: each is written under a temporary name,
//	               synced and renamed, and its directory is synced
//	directory.go   directories that survive a power loss
//	infolder.go    errors that name the directory of a file
//	read.go        files that users name, up to a limit
//	diskerror.go   advice about disk errors
//	filelock.go    locks that end with the processes that hold them
//	lockdir.go     directories that one process at a time can use
//	executable.go  files that were just written and will be executed
//	mount.go       directories that are visible at a second path
//	procstat.go    /proc/PID/stat, to tell a process from a later process with the same PID
//	untar.go       tar archives, unpacked below one directory
//	shortpath.go   paths that are short enough for the address of a socket
//	digest.go      SHA-256 sums as hexadecimal digits
//
// It does not depend on environments or units.
package osutil
