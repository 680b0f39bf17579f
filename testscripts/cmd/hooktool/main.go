// Command hooktool is the thin client and nothing else, for tests that want it built in a
// moment, for any architecture.
package main

import (
	"os"

	_ "bijou/hookenv/client"
)

func main() {
	os.Stderr.WriteString("no hook tool, or no client id\n")
	os.Exit(99)
}
