// Command etcdserver35 is an etcd server of the release before the one in testscripts/kit/etcdserver. A
// test updates a cluster from this one to that one.
//
// It is a separate module, because one module cannot contain two releases of the server.
// ../etcdserver/build builds it too.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
