// Package etcdtest runs real etcd servers for tests: one or three members on unix sockets in their own
// directory, without ports, ready in about a second.
//
// It is not an etcd client and imports nothing of bijou. It never builds the server:
// testscripts/kit/etcdserver/build does, and tests that find none are skipped.
package etcdtest
