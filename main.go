// Command bijou is the whole of an early-Juju deployment in one binary: which
// part of it runs depends on the name it is called by.
package main

import (
	"os"

	"bijou/multicall"
)

func main() { os.Exit(multicall.Main(os.Args, multicall.Options{})) }
