package proof

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// call is a command of a script; a word that is only known when it runs is empty.
type call struct {
	file string
	line int
	argv []string
}

// checkCalls holds the calls of hook tools in the charm's scripts against the tools' own table.
func (p *proofer) checkCalls() {
	var calls []call
	functions := map[string]bool{}
	seen := map[string]bool{} // by where links lead: many hooks are links to one file
	for _, pattern := range []string{"dispatch", "hooks/*", "actions/*", "lib/*", "scripts/*"} {
		files, _ := fs.Glob(p.root.FS(), pattern)
		for _, file := range files {
			target := p.target(file)
			if seen[target] {
				continue
			}
			seen[target] = true
			if data := p.read(file); isShell(interpreter(data)) || path.Ext(file) == ".sh" {
				calls = append(calls, p.shellCalls(file, data, functions)...)
			}
		}
	}

	for _, c := range calls {
		name := c.argv[0]
		if slices.Contains(p.rules.Tools, name) {
			if err := p.rules.CheckCall(c.argv); err != nil {
				p.add(Warning, c.file, c.line, "%v", err)
			}
		} else if meant := suggest(name, p.sisters(name)); meant != "" && !functions[name] && !isThere(name) {
			p.add(Warning, c.file, c.line, "there is no tool %q%s", name, meant)
		}
	}
}

// sisters returns the tools that a word may have been meant to be: one half of it is a half of theirs.
func (p *proofer) sisters(name string) []string {
	family, rest, isFamily := strings.Cut(name, "-")
	return slices.DeleteFunc(slices.Clone(p.rules.Tools), func(tool string) bool {
		toolFamily, toolRest, _ := strings.Cut(tool, "-")
		return !isFamily || toolFamily != family && toolRest != rest || slices.Contains(p.hookNames(), name)
	})
}

// shellCalls adds the functions that the script declares to functions.
func (p *proofer) shellCalls(file string, data []byte, functions map[string]bool) (calls []call) {
	script, err := syntax.NewParser().Parse(bytes.NewReader(data), file)
	if wrong, ok := errors.AsType[syntax.ParseError](err); ok && utf8.Valid(data) {
		p.add(Warning, file, int(wrong.Pos.Line()), "the shell cannot read it: %s", wrong.Text)
	}
	if err != nil {
		return nil
	}

	syntax.Walk(script, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			functions[n.Name.Value] = true
		case *syntax.CallExpr:
			if argv := literals(n.Args); len(argv) > 0 {
				calls = append(calls, call{file, int(n.Pos().Line()), argv})
			}
		}

		return true
	})

	return calls
}

// literals returns the words of a call, of --option=$VALUE the option and an empty one.
func literals(words []*syntax.Word) (argv []string) {
	for _, word := range words {
		beginning, _ := word.Parts[0].(*syntax.Lit)
		if text := word.Lit(); text == "" && beginning != nil && strings.HasPrefix(beginning.Value, "--") {
			option, _, _ := strings.Cut(beginning.Value, "=")
			argv = append(argv, option, "")
		} else {
			argv = append(argv, text)
		}
	}

	return argv
}
