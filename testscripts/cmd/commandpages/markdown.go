package main

import (
	"fmt"
	"strings"
)

const head = `# Commands

This page lists every command of this binary with its options, as ` + "`--help`" + ` prints them. ` + "`go run ./testscripts/cmd/commandpages markdown`" + `
writes the page, and a test in that package compares the two. For the hook tools, see [Hook tools](hook-tools.md).

Options can stand anywhere before two dashes (` + "`--`" + `). A command exits with 0 after success, with 1 after a failure, with 2 for wrong usage
without having tried anything, and with 127 for an unknown name. Some commands have more exit codes, which their text lists. Data goes to
stdout, and everything else to stderr. ` + "`NO_COLOR`" + ` turns colours off.
`

// markdownPage returns the page of all programs.
func markdownPage(all []program) string {
	var b strings.Builder
	b.WriteString(head)
	for _, p := range all {
		fmt.Fprintf(&b, "\n## %s\n\n", p.name)
		writeCommand(&b, p.command)
		for _, c := range p.commands {
			fmt.Fprintf(&b, "### %s\n\n", strings.NewReplacer("<", `\<`, "[", `\[`).Replace(c.usage))
			if len(c.also) > 0 {
				fmt.Fprintf(&b, "Also called `%s`.\n\n", strings.Join(c.also, "`, `"))
			}
			writeCommand(&b, c)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeCommand(b *strings.Builder, c command) {
	for _, p := range c.text {
		if p.verbatim {
			fmt.Fprintf(b, "```text\n%s\n```\n\n", p.text)
			continue
		}
		fmt.Fprintf(b, "%s\n\n", escape(p.text))
	}
	entries := append(c.args[:len(c.args):len(c.args)], c.flags...)
	for i, e := range entries {
		if i == 0 {
			b.WriteString("| word or option | |\n| --- | --- |\n")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(e.name, "|", `\|`), escape(e.help))
	}
	if len(entries) > 0 {
		b.WriteString("\n")
	}
}

// escape escapes characters that Markdown would interpret.
func escape(text string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`, "|", `\|`, "_", `\_`).Replace(text)
}
