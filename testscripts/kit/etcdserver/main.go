// Command etcdserver is the unmodified etcd server for the tests, which run against the real program.
//
// It is a separate module, so that the product neither links nor requires any part of the server.
// ./build builds it to the place where package etcdtest looks for it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
