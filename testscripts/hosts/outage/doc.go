// Package outage proves that nothing is lost when a store goes away under a real
// workload: the product's own binary as child processes, real etcd members that
// are killed, SQLite files that are locked, deleted, or on a full disk.
//
// It is tests only and nothing imports it. What a store promises by itself is
// tested beside it (state/store/sqlite, state/store/etcd); here is what users
// see. Most take minutes, and run only if BIJOU_TEST_LONG is set.
package outage
