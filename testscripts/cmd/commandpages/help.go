package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"bijou/hookenv/tools"
	"bijou/multicall"
)

// command is one command as --help describes it.
type command struct {
	usage string   // juju deploy <charm> [<application>]
	also  []string // its other names
	text  []paragraph
	args  []entry
	flags []entry // without the flags of the program, and without --help
}

// entry is an option or a word with its description.
type entry struct{ name, help string }

// paragraph is a part of a help text. Indented text in it is an example.
type paragraph struct {
	text     string
	verbatim bool
}

// program is one command line with its commands.
type program struct {
	name string
	command
	commands []command
}

// programs returns the names of the programs whose command lines kong parses. It leaves out hook tools,
// which have no summary, and providers, which people never call.
func programs() (names []string) {
	for _, a := range multicall.Applets() {
		if a.Summary != "" && !strings.HasPrefix(a.Name, "bijou-provider-") {
			names = append(names, a.Name)
		}
	}
	return names
}

func readPrograms() (all []program, err error) {
	for _, name := range programs() {
		p := program{name: name}
		argv := []string{name}
		if name == "bijou" {
			// Without options, the applet bijou prints its table of applets.
			argv = []string{name, "help", name}
		}
		var below []command
		if p.command, below, err = readCommand(argv, nil); err != nil {
			return nil, err
		}
		if p.commands, err = readBelow(name, below, p.flags); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// readBelow reads the listed commands. If a command only groups other commands, it reads these instead.
func readBelow(program string, listed []command, inherited []entry) (all []command, err error) {
	for _, l := range listed {
		c, below, err := readCommand(append([]string{program}, strings.Fields(l.usage)...), inherited)
		if err != nil {
			return nil, err
		}
		if len(below) > 0 {
			deeper, err := readBelow(program, below, inherited)
			if err != nil {
				return nil, err
			}
			all = append(all, deeper...)
			continue
		}
		c.also = l.also
		all = append(all, c)
	}
	return all, nil
}

// readCommand reads the help of a command, and the commands that it lists.
func readCommand(argv []string, inherited []entry) (c command, below []command, err error) {
	text, err := helpOf(argv)
	if err != nil {
		return c, nil, err
	}
	usage, text, _ := strings.Cut(strings.TrimPrefix(text, "Usage: "), "\n")
	c.usage = strings.TrimSuffix(regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(usage, ""), " [flags]")
	text, _, _ = strings.Cut(text, "\nRun \"")
	parts := regexp.MustCompile(`(?m)^(Arguments|Flags|Commands):\n`).Split(text, -1)
	heads := regexp.MustCompile(`(?m)^(Arguments|Flags|Commands):\n`).FindAllStringSubmatch(text, -1)
	c.text = splitParagraphs(parts[0])
	for i, h := range heads {
		for _, e := range splitEntries(parts[i+1]) {
			switch {
			case h[1] == "Arguments":
				c.args = append(c.args, e)
			case h[1] == "Commands":
				below = append(below, listedCommand(e))
			case !strings.HasPrefix(e.name, "-h, --help") && !contains(inherited, e):
				c.flags = append(c.flags, e)
			}
		}
	}
	return c, below, nil
}

// listedCommand splits off the other names, as in "deploy (push,put)".
func listedCommand(e entry) command {
	words, also, _ := strings.Cut(e.name, " (")
	also, _, _ = strings.Cut(also, ")")
	c := command{usage: regexp.MustCompile(` [<\[].*`).ReplaceAllString(words, "")}
	if also != "" {
		c.also = strings.Split(also, ",")
	}
	return c
}

func contains(all []entry, e entry) bool {
	for _, other := range all {
		if other == e {
			return true
		}
	}
	return false
}

// splitEntries reads lines that consist of a name, two or more spaces, and a description.
func splitEntries(text string) (all []entry) {
	for line := range strings.Lines(text) {
		parts := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), 2)
		if parts[0] != "" {
			all = append(all, entry{parts[0], strings.Join(parts[1:], "")})
		}
	}
	return all
}

func splitParagraphs(text string) (all []paragraph) {
	fresh := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		verbatim := strings.HasPrefix(line, "  ")
		n := len(all)
		switch {
		case line == "":
			fresh = true
			continue
		case !fresh && all[n-1].verbatim == verbatim:
			all[n-1].text += "\n" + strings.TrimPrefix(line, "    ")
		default:
			all = append(all, paragraph{strings.TrimPrefix(line, "    "), verbatim})
		}
		fresh = false
	}
	return all
}

// helpOf returns the command's output for --help.
func helpOf(argv []string) (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	printed := make(chan string)
	go func() {
		var b bytes.Buffer
		// Copy ends when the write end is closed below.
		_, _ = io.Copy(&b, read)
		printed <- b.String()
	}()
	if len(argv) < 3 || argv[0] != "bijou" || argv[1] != "help" {
		argv = append(argv[:len(argv):len(argv)], "--help")
	}
	stdout := os.Stdout
	os.Stdout = write
	// With this number of columns no line is wrapped.
	os.Setenv("COLUMNS", "10000")
	code := multicall.Main(argv, multicall.Options{})
	os.Stdout = stdout
	write.Close()
	text := <-printed
	if code != 0 || !strings.HasPrefix(text, "Usage: ") {
		return "", fmt.Errorf("%s: exit code %d, printed %q", strings.Join(argv, " "), code, text)
	}
	return text, nil
}

// hookTools returns the tools' names and their help.
func hookTools() (names, texts []string) {
	for _, tool := range tools.All() {
		r, _ := tools.RunWithoutHook([]string{tool.Name, "--help"})
		names, texts = append(names, tool.Name), append(texts, string(r.Stdout))
	}
	return names, texts
}
