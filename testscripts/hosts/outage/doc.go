// Package outage tests that nothing is lost when a store goes away under a real workload. It runs the
// real binary's processes over real etcd members that are killed, and over SQLite files that are
// locked, deleted, or on a full disk.
//
// The promises of each store are tested beside it (state/store/sqlite, state/store/etcd). This package tests
// the behaviour that users see. Most tests take minutes, and run only if BIJOU_TEST_LONG is set.
package outage
