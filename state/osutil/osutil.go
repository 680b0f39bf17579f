// Package osutil does with files, locks, mounts and processes what the standard library leaves to
// its callers. Each file has one subject:
//
//	file.go        files and symlinks that survive a loss of power: written beside, synced, renamed, and
//	               their directory synced
//	directory.go   directories that do
//	infolder.go    errors that name the directory of a file
//	read.go        files of others, up to a limit
//	diskerror.go   what to do about an error of a disk
//	filelock.go    locks that end with the processes that hold them
//	lockdir.go     a directory that one process has at a time
//	executable.go  files that were just written and will be executed
//	mount.go       directories that others find at a second path
//	procstat.go    /proc/PID/stat, to tell a process from a later one with the same PID
//	untar.go       tar archives, unpacked below one directory
//	shortpath.go   a second path of a socket, that its address has room for
//	digest.go      SHA-256 sums as hexadecimal digits
//
// It knows no environment and no unit, and imports nothing of bijou.
package osutil
