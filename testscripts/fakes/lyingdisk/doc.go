// Package lyingdisk is a file system for tests, over FUSE, that keeps what a disk promises and no more.
// Data that was not synced before a power cut is lost, in full or in part. Reads, writes and syncs fail
// on demand.
//
// A file's contents are durable once the file is synced, and its name once its directory is. After a
// failed sync the data is lost, and a later sync does not bring it back, as on Linux.
//
// A separate process serves it, because a process can wait for itself if it serves files that it has
// mapped.
package lyingdisk
