// Command etcdserver is the etcd server itself, as its makers ship it, for the
// tests: they run against the real thing.
//
// It is a module of its own, so that nothing of the server is linked into the
// product or stands among its requirements. ./build builds it to where package
// etcdtest looks for it; nothing imports it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
