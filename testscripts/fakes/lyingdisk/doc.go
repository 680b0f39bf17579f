// Package lyingdisk is a FUSE file system for tests that guarantees only what a real disk guarantees. A power
// cut loses all or some of the data that was not synced. Reads, writes and syncs fail on demand.
//
// A file's contents are durable once the file is synced, and its name once its directory is. After a
// failed sync the data is lost, and a later sync does not bring it back, as on Linux.
//
// A separate process serves it, because a process that serves files that it has mapped itself may deadlock.
package lyingdisk
