// Package etcdtest runs real etcd servers for tests: one or three members on unix sockets in their own
// directory, without ports, ready in about a second.
//
// It is not an etcd client. It never builds the server: testscripts/kit/etcdserver/build does. Tests are
// skipped if there is no server.
package etcdtest
