// Package lyingdisk is a file system for tests, over FUSE, that keeps what a disk promises and no
// more: what was not synced before the power goes is lost, wholly or in part, and reads, writes and
// syncs fail when told to.
//
// A file's contents last once the file is synced, its name once its directory is. After a sync that
// failed, what it was for is lost, and a later sync does not bring it back, as Linux has it.
//
// It is served by a process of its own: a process that serves files which it has mapped itself can
// wait for itself.
package lyingdisk
