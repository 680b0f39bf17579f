// Program resident is the only program in the container images of the tests of boot servers. They link it
// statically. It does nothing until it is stopped.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The channel is buffered, since signal.Notify does not wait for a receiver.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
