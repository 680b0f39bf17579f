// Command hooktool contains only the thin client, for tests that need a quick build for any architecture.
package main

import (
	"os"

	_ "bijou/hookenv/client"
)

func main() {
	os.Stderr.WriteString("no hook tool, or no client id\n")
	os.Exit(99)
}
