// Program resident is all that is in the container images of the tests of boot
// servers: it does nothing until it is told to end. It is linked statically, by
// them. Nothing imports it.
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
