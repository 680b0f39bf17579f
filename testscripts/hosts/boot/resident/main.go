// Program resident is the only content of the container images in the tests of boot servers, which link
// it statically. It does nothing until it is stopped.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1) // signal.Notify does not wait
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
