// Command etcdserver35 is an etcd server of the release before that of
// testscripts/kit/etcdserver, for the test that updates a cluster from one to the other.
//
// It is a module of its own, since two releases of the server cannot stand in
// one. ../etcdserver/build builds it, too; nothing imports it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
