// Commandpages writes docs/reference/commands.md and the man pages from the output of --help of each
// command.
//
//	commandpages markdown >docs/reference/commands.md
//	commandpages man FOLDER
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	all, err := readPrograms()
	switch {
	case err != nil:
		return err
	case len(args) == 1 && args[0] == "markdown":
		_, err := os.Stdout.WriteString(markdownPage(all))
		return err
	case len(args) == 2 && args[0] == "man":
		return writeManPages(args[1], all)
	}
	return fmt.Errorf("usage: commandpages markdown | man FOLDER")
}

func writeManPages(dir string, all []program) error {
	pages := map[string]string{"hook-tools.7": hookToolsPage()}
	for _, p := range all {
		pages[p.name+"."+section(p.name)] = manPage(p)
	}
	for name, text := range pages {
		path := filepath.Join(dir, "man"+name[len(name)-1:], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// section returns the section of a program's man page: 8 for programs that a service manager runs.
func section(program string) string {
	switch program {
	case "bijou", "juju", "neco", "jujud":
		return "1"
	}
	return "8"
}
