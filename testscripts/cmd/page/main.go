// Command page examines the form of this repository's Go code, not its behaviour.
//
//	go run ./testscripts/cmd/page same [COMMIT [COMMIT]]
//
// compares two commits, by default HEAD's parent and HEAD, and prints the declarations that differ. Comments,
// blank lines, and the place of a declaration in its package do not count. It exits with 1 if any declaration
// differs, because such a commit changed more than the form.
//
//	go run ./testscripts/cmd/page figures [DIRECTORY...]
//
// prints figures of the product's code, or of the code below the directories: how many blank lines its
// functions have, and how they assign and return.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	err := run(os.Args[1:])
	if err == nil {
		return
	}

	if !errors.Is(err, errDiffers) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	os.Exit(1)
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no verb given\nhint: page same, or page figures")
	}

	switch args[0] {
	case "same":
		return printDifferences(args[1:])
	case "figures":
		return printFigures(args[1:])
	}
	return fmt.Errorf("there is no verb %q\nhint: page same, or page figures", args[0])
}
