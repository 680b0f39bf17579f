// Command charmhub serves charms as Charmhub's API does, for trying commands by hand:
//
//	go run ./testscripts/cmd/charmhub -listen 127.0.0.1:8080 -base ubuntu@24.04 ./charms/mysql ./charms/wordpress
//	BIJOU_CHARMHUB_URL=http://127.0.0.1:8080 juju deploy mysql
//
// Each directory becomes revision 1 in latest/stable of a charm with the directory's name. The server
// runs until it is interrupted.
package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"bijou/state/constraints"
	"bijou/testscripts/fakes/charmhub"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "where to listen")
	bases := flag.String("base", "ubuntu@24.04", "the bases of all charms, with commas")
	flag.Parse()
	log.SetFlags(0)

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := charmhub.On(listener)
	defer server.Close()

	for _, dir := range flag.Args() {
		err := server.PublishDir(charmhub.Publication{
			Dir: dir, Name: filepath.Base(dir), Channel: "latest/stable", Revision: 1,
			Bases: strings.Split(*bases, ","), Arch: constraints.ArchOf(runtime.GOARCH),
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	log.Printf("export BIJOU_CHARMHUB_URL=%s", server.URL())
	// The channel is buffered, since signal.Notify does not wait for a receiver.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	<-interrupted
}
