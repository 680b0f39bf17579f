package proof

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// call is a call of a command in a program. Words that are only known at run time are empty.
type call struct {
	file string
	line int
	argv []string

	// isOpen is set if one of the unknown words can be an option, or several words.
	isOpen bool

	// hooks are the hooks that make the call, if the program shows that no others do.
	hooks []string

	// readsFacts is set if the function that makes the call reads facts about the hook, such as its relation, from the
	// environment.
	readsFacts bool
}

// program is a script of the charm. It is read only once, even if several symlinks lead to it.
type program struct {
	file  string
	names []string // the paths of the file and of its symlinks, below the charm's directory
	data  []byte
}

// findPrograms returns the charm's scripts, without Python modules in src.
func (p *proofer) findPrograms() (all []*program) {
	byTarget := map[string]*program{}
	for _, pattern := range []string{"dispatch", "hooks/*", "actions/*", "lib/*", "scripts/*"} {
		files, _ := fs.Glob(p.root.FS(), pattern)
		for _, file := range files {
			target := p.target(file)
			if byTarget[target] == nil {
				byTarget[target] = &program{file: file, data: p.read(file)}
				all = append(all, byTarget[target])
			}
			byTarget[target].names = append(byTarget[target].names, file)
		}
	}

	return all
}

// checkCalls checks the calls of hook tools in the charm's scripts. It compares them with the tools' own table, and
// with the charm's declarations.
func (p *proofer) checkCalls() {
	programs := p.findPrograms()
	calls, functions := p.findCalls(programs)
	for _, c := range calls {
		name := c.argv[0]
		switch {
		case functions[name]:
			// The call is of a function that a script declares, not of a tool.
		case slices.Contains(p.rules.Tools, name):
			args, err := p.rules.CheckCall(c.argv)
			if err != nil {
				p.add(Warning, c.file, c.line, "%v", err)
				continue
			}
			p.checkArguments(c, args)
			p.checkContext(c, programs)
		default:
			if meant := suggest(name, p.sisters(name)); meant != "" && !isThere(name) {
				p.add(Warning, c.file, c.line, "there is no tool %q%s", name, meant)
			}
		}
	}
}

// findCalls returns the calls in the charm's programs and modules, and the functions that its shell scripts declare.
func (p *proofer) findCalls(programs []*program) (calls []call, functions map[string]bool) {
	functions = map[string]bool{}
	for _, s := range programs {
		if isShell(interpreter(s.data)) || path.Ext(s.file) == ".sh" {
			calls = append(calls, p.shellCalls(s.file, s.data, functions)...)
		}
	}

	return append(calls, p.checkPython(programs)...), functions
}

// checkArguments compares the first argument of a call with the charm's declarations. In the sources of a
// reactive charm it accepts all names, since layers declare more of them.
func (p *proofer) checkArguments(c call, args []string) {
	if len(args) == 0 || args[0] == "" || args[0] == "-" {
		return
	}

	word := args[0]
	files := []string{"metadata.yaml", "charmcraft.yaml"}
	switch c.argv[0] {
	case "config-get":
		p.checkDeclared(c, word, "option", p.declaredOptions())
	case "relation-ids":
		p.checkDeclared(c, word, "relation", p.relationNames())
	case "resource-get":
		p.checkDeclared(c, word, "resource", p.declared(files, "resources"))
	case "storage-add":
		name, _, _ := strings.Cut(word, "=")
		p.checkDeclared(c, name, "storage", p.declared(files, "storage"))
	case "relation-get":
		// Every unit has these settings. All other settings depend on the interface.
		own := []string{"private-address", "ingress-address", "egress-subnets"}
		meant := suggest(strings.ReplaceAll(word, "_", "-"), own)
		if len(word) > 12 && meant != "" &&
			!slices.Contains(own, word) {
			p.add(Warning, c.file, c.line, "relation-get: no unit gets a setting %q automatically%s", word, meant)
		}
	}
}

// checkDeclared warns of a word that is none of the charm's names of a kind.
func (p *proofer) checkDeclared(c call, word, kind string, names []string) {
	if !p.has("layer.yaml") && !slices.Contains(names, word) {
		p.add(Warning, c.file, c.line, "%s: the charm declares no %s %q%s", c.argv[0], kind, word, suggest(word, names))
	}
}

// checkContext reports a call of a relation tool that names no relation, in a hook that has none. It skips hooks
// that a different script may call, and hooks that read their relation from the environment. In a program for all
// hooks, it reports only calls that the handlers of such hooks make.
func (p *proofer) checkContext(c call, programs []*program) {
	if !slices.Contains([]string{"relation-get", "relation-set", "relation-list"}, c.argv[0]) ||
		c.isOpen || slices.ContainsFunc(c.argv[1:], namesRelation) {
		return
	}

	hooks := p.rules.Hooks(nil, nil) // the hooks that have no relation
	if p.has("dispatch") {
		hasRelation := func(hook string) bool { return !slices.Contains(hooks, hook) }
		if len(c.hooks) > 0 && !c.readsFacts && !slices.ContainsFunc(c.hooks, hasRelation) {
			p.addWithoutRelation(c, c.hooks[0])
		}
		return
	}

	own := slices.IndexFunc(programs, func(s *program) bool { return s.file == c.file })
	if own < 0 || bytes.Contains(programs[own].data, []byte("JUJU_")) {
		return
	}

	for _, name := range programs[own].names {
		if path.Dir(name) != "hooks" || !slices.Contains(hooks, path.Base(name)) {
			return
		}

		mention := regexp.MustCompile(`[/"']` + regexp.QuoteMeta(path.Base(name)) + `\b`)
		if slices.ContainsFunc(programs, func(s *program) bool {
			return s.file != c.file && mention.Match(s.data)
		}) {
			return
		}
	}

	p.addWithoutRelation(c, path.Base(c.file))
}

func (p *proofer) addWithoutRelation(c call, hook string) {
	p.add(Warning, c.file, c.line, "%s: the hook %s belongs to no relation: name one with -r", c.argv[0], hook)
}

func namesRelation(word string) bool {
	return strings.HasPrefix(word, "-r") || strings.HasPrefix(word, "--relation") || word == "--help"
}

// declaredOptions returns the names of the charm's options.
func (p *proofer) declaredOptions() []string {
	options := p.declared([]string{"config.yaml"}, "options")
	for key, value := range pairs(p.documents["charmcraft.yaml"]) {
		for inner, all := range pairs(value) {
			for name := range pairs(all) {
				if key.Value == "config" && inner.Value == "options" {
					options = append(options, name.Value)
				}
			}
		}
	}

	return options
}

// sisters returns the tools that a word may be a misspelling of. The word shares the part before or after the first
// dash with these tools.
func (p *proofer) sisters(name string) []string {
	family, rest, isFamily := strings.Cut(name, "-")
	return slices.DeleteFunc(slices.Clone(p.rules.Tools), func(tool string) bool {
		toolFamily, toolRest, _ := strings.Cut(tool, "-")
		return !isFamily || toolFamily != family && toolRest != rest || slices.Contains(p.hookNames(), name)
	})
}

// shellCalls returns the calls in a shell script. It adds the functions that the script declares to functions.
func (p *proofer) shellCalls(file string, data []byte, functions map[string]bool) (calls []call) {
	script, err := syntax.NewParser().Parse(bytes.NewReader(data), file)
	// The parser reads only UTF-8, but shells also run scripts in other encodings.
	if wrong, ok := errors.AsType[syntax.ParseError](err); ok && utf8.Valid(data) {
		p.add(Warning, file, int(wrong.Pos.Line()), "a shell cannot parse this script: %s", wrong.Text)
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
				calls = append(calls, call{
					file:   file,
					line:   int(n.Pos().Line()),
					argv:   argv,
					isOpen: slices.ContainsFunc(n.Args[1:], isOpenWord),
				})
			}
			p.checkSource(file, data, n)
		}

		return true
	})

	return calls
}

// checkSource warns of a file that a script sources and that the charm lacks. It accepts a file that the script
// names twice, since the script may create or look for it. It accepts all files if the script uses cd.
func (p *proofer) checkSource(file string, data []byte, n *syntax.CallExpr) {
	if len(n.Args) < 2 || n.Args[0].Lit() != "." && n.Args[0].Lit() != "source" {
		return
	}

	base := "."
	name := literal(n.Args[1])
	if name == "" {
		base, name = rooted(file, n.Args[1])
	}

	// A virtual environment is made at run time.
	isLocal := filepath.IsLocal(name) && strings.Contains(name, "/") && !strings.Contains(name, "env/")
	isGuarded := bytes.Count(data, []byte(path.Base(name))) > 1 || bytes.Contains(data, []byte("cd ")) ||
		bytes.Contains(data, []byte("pushd ")) || p.has("layer.yaml")
	if !isLocal || isGuarded || !p.examined[p.target(file)] {
		return
	}

	if _, err := p.root.Stat(path.Join(base, name)); err != nil {
		p.add(Warning, file, int(n.Pos().Line()), "this script sources %q, which the charm does not have", path.Join(base, name))
	}
}

// rooted splits a path like "$CHARM_DIR/lib/x" or "$(dirname "$0")/x" into the directory of the charm where
// it begins, and the rest. It returns empty strings for other forms.
func rooted(file string, word *syntax.Word) (base, rest string) {
	parts := word.Parts
	if quoted, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = quoted.Parts
	}
	if len(parts) != 2 {
		return "", ""
	}

	end, isLiteral := parts[1].(*syntax.Lit)
	if !isLiteral || !strings.HasPrefix(end.Value, "/") {
		return "", ""
	}

	rest = "./" + strings.TrimPrefix(end.Value, "/")
	switch begin := parts[0].(type) {
	case *syntax.ParamExp:
		if begin.Param != nil && slices.Contains([]string{"CHARM_DIR", "JUJU_CHARM_DIR"}, begin.Param.Value) {
			return ".", rest
		}
	case *syntax.CmdSubst:
		var text strings.Builder
		syntax.NewPrinter().Print(&text, begin)
		if slices.Contains([]string{"$(dirname $0)", `$(dirname "$0")`}, text.String()) {
			return path.Dir(file), rest
		}
	}

	return "", ""
}

// literals returns the words of a call. A word known only at run time is empty. For --option=$VALUE it returns the
// option and an empty word.
func literals(words []*syntax.Word) (argv []string) {
	for _, word := range words {
		beginning, _ := word.Parts[0].(*syntax.Lit)
		if text := literal(word); text == "" && beginning != nil && strings.HasPrefix(beginning.Value, "--") {
			option, _, _ := strings.Cut(beginning.Value, "=")
			argv = append(argv, option, "")
		} else {
			argv = append(argv, text)
		}
	}

	return argv
}

// literal returns a word without its quotes, or "" if the word is only known at run time.
func literal(word *syntax.Word) string {
	if len(word.Parts) != 1 {
		return word.Lit()
	}

	switch part := word.Parts[0].(type) {
	case *syntax.SglQuoted:
		if !part.Dollar {
			return part.Value
		}
	case *syntax.DblQuoted:
		inner := &syntax.Word{Parts: part.Parts}
		if len(part.Parts) == 1 && !strings.Contains(inner.Lit(), `\`) {
			return inner.Lit()
		}
	}

	return word.Lit()
}

// isOpenWord reports whether a word can become an option, or several words, since it begins with an unknown part.
func isOpenWord(word *syntax.Word) bool {
	if literal(word) != "" {
		return false
	}

	first := word.Parts[0]
	if quoted, ok := first.(*syntax.DblQuoted); ok && len(quoted.Parts) > 0 {
		first = quoted.Parts[0]
	}
	text, isLiteral := first.(*syntax.Lit)
	return !isLiteral || strings.HasPrefix(text.Value, "-")
}
