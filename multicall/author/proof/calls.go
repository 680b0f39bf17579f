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

// call is a call of a command in a program.
type call struct {
	file string
	line int
	argv []string // the command and its arguments; a word that is known only at run time is empty

	// isOpen is set if an unknown word can be an option, or can become several words.
	isOpen bool

	// hooks are the hooks that make the call, if the program shows that no other hooks do. Otherwise it is empty.
	hooks []string

	// readsFacts is set if the function that makes the call reads facts about the hook, such as its relation,
	// from the environment.
	readsFacts bool
}

// program is a script of the charm. It is read only once, even if several symlinks lead to it.
type program struct {
	file  string
	names []string // the paths of the file and of its symlinks, below the charm's directory
	data  []byte
}

// findPrograms returns the charm's programs: dispatch, and the files in hooks, actions, lib and scripts. Symlinks to
// the same file are one program. A directory, or a file that cannot be read, is a program without text.
func (p *proofer) findPrograms() (programs []*program) {
	byTarget := map[string]*program{}
	for _, pattern := range []string{"dispatch", "hooks/*", "actions/*", "lib/*", "scripts/*"} {
		// Glob fails only for an invalid pattern.
		files, _ := fs.Glob(p.root.FS(), pattern)
		for _, file := range files {
			// All symlinks to files that do not exist have the target "", and count as one program without text.
			target := p.target(file)
			if byTarget[target] == nil {
				byTarget[target] = &program{file: file, data: p.read(file)}
				programs = append(programs, byTarget[target])
			}
			byTarget[target].names = append(byTarget[target].names, file)
		}
	}

	return programs
}

// checkCalls checks the calls of hook tools in the charm's programs and modules. It compares them with the tools' own
// table, and with the charm's declarations. It also warns of calls that misspell a tool.
func (p *proofer) checkCalls() {
	programs := p.findPrograms()
	// findCalls also reports the faults that it finds in the programs, such as syntax errors.
	calls, functions := p.findCalls(programs)
	for _, c := range calls {
		name := c.argv[0]
		if functions[name] {
			// The call is of a function that a script declares, not of a tool.
			continue
		}

		if !slices.Contains(p.rules.Tools, name) {
			suggestion := suggest(name, p.similarTools(name))
			if suggestion != "" && !isInstalled(name) {
				p.add(Warning, c.file, c.line, "there is no tool %q%s", name, suggestion)
			}
			continue
		}

		args, err := p.rules.CheckCall(c.argv)
		if err != nil {
			p.add(Warning, c.file, c.line, "%v", err)
			continue
		}
		p.checkArguments(c, args)
		p.checkContext(c, programs)
	}
}

// findCalls returns the calls in the charm's shell scripts, the calls of hook tools in its Python programs and modules,
// and the functions that the shell scripts declare. It also adds findings about these files, such as syntax errors.
func (p *proofer) findCalls(programs []*program) (calls []call, functions map[string]bool) {
	functions = map[string]bool{}
	for _, s := range programs {
		if isShell(interpreter(s.data)) || path.Ext(s.file) == ".sh" {
			calls = append(calls, p.shellCalls(s.file, s.data, functions)...)
		}
	}

	return append(calls, p.checkPython(programs)...), functions
}

// checkArguments warns if the first argument of a hook tool's call names something that the charm does not
// declare, such as an option. For relation-get it warns if the argument probably misspells a setting that every
// unit has. It skips an argument that is known only at run time.
func (p *proofer) checkArguments(c call, args []string) {
	// relation-get prints all settings for "-".
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
		automatic := []string{"private-address", "ingress-address", "egress-subnets"}
		if slices.Contains(automatic, word) {
			return
		}
		suggestion := suggest(strings.ReplaceAll(word, "_", "-"), automatic)
		// A shorter word is more probably a setting of the interface.
		if suggestion != "" && len(word) > 12 {
			p.add(Warning, c.file, c.line, "relation-get: no unit gets a setting %q automatically%s", word, suggestion)
		}
	}
}

// checkDeclared warns if the call's word is not one of the names that the charm declares. The argument kind
// is a word for these names, such as option. In the sources of a reactive charm it accepts all words, since
// layers declare more names.
func (p *proofer) checkDeclared(c call, word, kind string, names []string) {
	isReactive := p.has("layer.yaml")
	if !isReactive && !slices.Contains(names, word) {
		p.add(Warning, c.file, c.line, "%s: the charm declares no %s %q%s", c.argv[0], kind, word, suggest(word, names))
	}
}

// checkContext reports a call of a relation tool that names no relation, if only hooks without a relation
// make the call. It skips calls in hooks that a different script may call, and calls that may read their
// relation from the environment. In a charm with a dispatch file, it leaves the check to checkHandlerContext.
func (p *proofer) checkContext(c call, programs []*program) {
	isRelationTool := slices.Contains([]string{"relation-get", "relation-set", "relation-list"}, c.argv[0])
	if !isRelationTool {
		return
	}
	// An open call may name a relation at run time.
	if c.isOpen || slices.ContainsFunc(c.argv[1:], namesRelation) {
		return
	}

	if p.has("dispatch") {
		p.checkHandlerContext(c)
		return
	}

	i := slices.IndexFunc(programs, func(s *program) bool { return s.file == c.file })
	if i < 0 {
		// The call is in a Python module, and not in a program.
		return
	}
	own := programs[i]
	readsEnvironment := bytes.Contains(own.data, []byte("JUJU_"))
	if readsEnvironment {
		return
	}

	// All names of the program must be hooks without a relation, which no other script calls.
	for _, name := range own.names {
		hook := path.Base(name)
		if path.Dir(name) != "hooks" || !slices.Contains(p.hooksWithoutRelation(), hook) {
			return
		}

		mention := regexp.MustCompile(`[/"']` + regexp.QuoteMeta(hook) + `\b`)
		isCaller := func(s *program) bool { return s.file != c.file && mention.Match(s.data) }
		if slices.ContainsFunc(programs, isCaller) {
			return
		}
	}

	p.addWithoutRelation(c, path.Base(c.file))
}

// checkHandlerContext is checkContext for a charm with a dispatch file, which handles all hooks. It reports a call if
// the program shows which hooks make the call, and all of them are in hooksWithoutRelation. It skips a call in a
// function that reads facts about the hook, such as its relation, from the environment.
func (p *proofer) checkHandlerContext(c call) {
	if len(c.hooks) == 0 || c.readsFacts {
		return
	}

	mayHaveRelation := func(hook string) bool { return !slices.Contains(p.hooksWithoutRelation(), hook) }
	if !slices.ContainsFunc(c.hooks, mayHaveRelation) {
		p.addWithoutRelation(c, c.hooks[0])
	}
}

// hooksWithoutRelation returns the names of the hooks that do not belong to a relation or a storage.
func (p *proofer) hooksWithoutRelation() []string { return p.rules.Hooks(nil, nil) }

// addWithoutRelation reports a call of a relation tool in a hook that has no relation.
func (p *proofer) addWithoutRelation(c call, hook string) {
	p.add(Warning, c.file, c.line, "%s: the hook %s belongs to no relation: name one with -r", c.argv[0], hook)
}

// namesRelation reports whether the argument of a relation tool names a relation, or asks for help, so that
// the call needs no relation of the hook.
func namesRelation(word string) bool {
	return strings.HasPrefix(word, "-r") || strings.HasPrefix(word, "--relation") || word == "--help"
}

// declaredOptions returns the names of the charm's options, from config.yaml and from config.options in
// charmcraft.yaml.
func (p *proofer) declaredOptions() []string {
	options := p.declared([]string{"config.yaml"}, "options")
	for key, config := range pairs(p.documents["charmcraft.yaml"]) {
		if key.Value != "config" {
			continue
		}
		for key, declared := range pairs(config) {
			if key.Value != "options" {
				continue
			}
			for name := range pairs(declared) {
				options = append(options, name.Value)
			}
		}
	}

	return options
}

// similarTools returns the tools of which a command's name may be a misspelling. These tools share the part
// before or after the first dash with the name. It returns none for a name without a dash, and for the name
// of a hook.
func (p *proofer) similarTools(name string) []string {
	begin, end, hasDash := strings.Cut(name, "-")
	if !hasDash || slices.Contains(p.hookNames(), name) {
		return nil
	}

	var similar []string
	for _, tool := range p.rules.Tools {
		toolBegin, toolEnd, _ := strings.Cut(tool, "-")
		if toolBegin == begin || toolEnd == end {
			similar = append(similar, tool)
		}
	}
	return similar
}

// shellCalls returns the calls in a shell script. It adds the functions that the script declares to
// functions. It also checks the files that the script sources. If it cannot parse the script, it returns no
// calls. It warns of a syntax error, unless the script is not UTF-8.
func (p *proofer) shellCalls(file string, data []byte, functions map[string]bool) (calls []call) {
	script, err := syntax.NewParser().Parse(bytes.NewReader(data), file)
	// The parser reads only UTF-8, but shells also run scripts in other encodings.
	if parseErr, ok := errors.AsType[syntax.ParseError](err); ok && utf8.Valid(data) {
		p.add(Warning, file, int(parseErr.Pos.Line()), "a shell cannot parse this script: %s", parseErr.Text)
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

// checkSource warns if a call in a script sources a file that the charm does not have. The argument data is
// the script's text.
//
// It accepts a file outside of the charm, a file in a virtual environment, a name without a slash, and a path
// that is known only at run time. It accepts a file that the script mentions twice, since the script may create
// the file, or check that it exists. It accepts all files in a script that changes the directory, in a script
// that is not a hook, an action or dispatch, and in the sources of a reactive charm.
func (p *proofer) checkSource(file string, data []byte, n *syntax.CallExpr) {
	if len(n.Args) < 2 {
		return
	}
	if command := n.Args[0].Lit(); command != "." && command != "source" {
		return
	}

	base := "."
	name := literal(n.Args[1])
	if name == "" {
		base, name = splitRooted(file, n.Args[1])
	}

	// A shell looks up a name without a slash in PATH.
	inCharm := filepath.IsLocal(name) && strings.Contains(name, "/")
	// A virtual environment is created at run time.
	inVirtualEnvironment := strings.Contains(name, "env/")
	if !inCharm || inVirtualEnvironment {
		return
	}
	// checkPrograms examines hooks, actions and dispatch.
	if !p.examined[p.target(file)] {
		return
	}

	isMentioned := bytes.Count(data, []byte(path.Base(name))) > 1
	changesDir := bytes.Contains(data, []byte("cd ")) || bytes.Contains(data, []byte("pushd "))
	isReactive := p.has("layer.yaml")
	if isMentioned || changesDir || isReactive {
		return
	}

	sourced := path.Join(base, name)
	if _, err := p.root.Stat(sourced); err != nil {
		p.add(Warning, file, int(n.Pos().Line()), "this script sources %q, which the charm does not have", sourced)
	}
}

// splitRooted splits a path such as "$CHARM_DIR/lib/x" or "$(dirname "$0")/x" in the script file. The result
// base is the directory of the charm for which the variable part stands. The result rest is the remaining
// path, which begins with "./". For other forms, splitRooted returns empty strings.
func splitRooted(file string, word *syntax.Word) (base, rest string) {
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
		// A strings.Builder never fails.
		var text strings.Builder
		syntax.NewPrinter().Print(&text, begin)
		if slices.Contains([]string{"$(dirname $0)", `$(dirname "$0")`}, text.String()) {
			return path.Dir(file), rest
		}
	}

	return "", ""
}

// literals returns the words of a call. A word that is known only at run time is empty. For --option=$VALUE it
// returns the option and an empty word.
func literals(words []*syntax.Word) (argv []string) {
	for _, word := range words {
		text := literal(word)
		if text != "" {
			argv = append(argv, text)
			continue
		}

		begin, isLiteral := word.Parts[0].(*syntax.Lit)
		isOption := isLiteral && strings.HasPrefix(begin.Value, "--")
		if isOption {
			option, _, _ := strings.Cut(begin.Value, "=")
			argv = append(argv, option)
		}
		argv = append(argv, "")
	}

	return argv
}

// literal returns a word without its quotes, or "" if the word is known only at run time.
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
		// A backslash can escape a character, so a word that contains one counts as unknown.
		inner := &syntax.Word{Parts: part.Parts}
		if len(part.Parts) == 1 && !strings.Contains(inner.Lit(), `\`) {
			return inner.Lit()
		}
	}

	// Lit returns "" if the word has any part that is not literal.
	return word.Lit()
}

// isOpenWord reports whether a word counts as one that can become an option or several words at run time. It
// does if literal returns "" for it, and it begins with a dash, or with anything except plain text. Double
// quotes at the beginning do not matter.
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
