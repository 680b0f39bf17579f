package main

import (
	"fmt"
	"strings"
)

// manPage returns a program's page in roff (man(7)).
func manPage(p program) string {
	var b strings.Builder
	first, _, _ := strings.Cut(p.text[0].text, ". ")
	writeHead(&b, p.name, section(p.name), strings.TrimRight(first, ".,:"))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n[flags]\n.SH DESCRIPTION\n", roff(p.usage))
	writeText(&b, p.text)
	writeTagged(&b, ".SH OPTIONS\n", p.flags)
	for i, c := range p.commands {
		if i == 0 {
			b.WriteString(".SH COMMANDS\n")
		}
		fmt.Fprintf(&b, ".SS %s\n", roff(c.usage))
		if len(c.also) > 0 {
			fmt.Fprintf(&b, ".PP\nAlso called %s.\n", roff(strings.Join(c.also, ", ")))
		}
		writeText(&b, c.text)
		writeTagged(&b, "", c.args)
		writeTagged(&b, "", c.flags)
	}
	b.WriteString(".SH EXIT STATUS\n0 done, 1 it failed, 2 wrong usage and nothing was tried.\n")
	return b.String()
}

// hookToolsPage returns a page with the help of each hook tool.
func hookToolsPage() string {
	var b strings.Builder
	writeHead(&b, "hook-tools", "7", "what charms call in their hooks")
	b.WriteString(".SH DESCRIPTION\nIn a hook all of these are on the PATH.\n")
	names, texts := hookTools()
	for i, name := range names {
		fmt.Fprintf(&b, ".SS %s\n.nf\n%s.fi\n", roff(name), verbatim(texts[i]))
	}
	return b.String()
}

func writeHead(b *strings.Builder, name, section, does string) {
	fmt.Fprintf(b, ".TH %s %s \"\" bijou bijou\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), section, roff(name), roff(does))
}

func writeText(b *strings.Builder, text []paragraph) {
	for _, p := range text {
		if p.verbatim {
			fmt.Fprintf(b, ".PP\n.nf\n%s.fi\n", verbatim(p.text))
			continue
		}
		b.WriteString(".PP\n" + roff(p.text) + "\n")
	}
}

func verbatim(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(roff(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String()
}

func writeTagged(b *strings.Builder, head string, entries []entry) {
	for i, e := range entries {
		if i == 0 {
			b.WriteString(head)
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(e.name), roff(e.help))
	}
}

// roff escapes text that roff would interpret as a command, and writes dashes so that readers can copy them.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
