// Package etcdtest runs real etcd servers for tests: one or three members on
// unix sockets in a folder of their own, without ports, ready in about a second.
//
// It is no client of etcd and imports nothing of bijou. Tests import it, of the
// store and of the scripts; nothing else does. It never builds the server:
// testscripts/kit/etcdserver/build does, and tests that find none are skipped.
package etcdtest
