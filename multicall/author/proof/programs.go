package proof

import (
	"bytes"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/console"
)

// checkPrograms checks the charm's programs: its hooks and actions, or the one program that stands for all
// of them.
func (p *proofer) checkPrograms() {
	hasProgram := false
	for _, name := range []string{"dispatch", "src/charm.py"} {
		if p.has(name) {
			hasProgram = true
			p.examine(name)
		}
	}

	hooks := p.checkFolder("hooks", p.hookNames())
	switch {
	case len(hooks) > 0 || hasProgram || len(p.documents) == 0:
		// It has hooks, or nothing to judge by.
	case p.has("layer.yaml"):
		p.add(Warning, "layer.yaml", 0,
			"these are the sources of a reactive charm, without hooks: deploy what charm build makes of them")
	default:
		p.add(Warning, p.fileOf("metadata.yaml"), 0,
			"the charm has no hooks and no dispatch: its units do nothing")
	}

	actions := p.declared([]string{"charmcraft.yaml"}, "actions")
	for key := range pairs(p.documents["actions.yaml"]) {
		actions = append(actions, key.Value)
	}

	files := p.checkFolder("actions", actions)
	for _, name := range actions {
		if !hasProgram && !slices.Contains(files, name) && name != "additionalProperties" {
			p.addLocated(Warning, p.fileOf("actions.yaml"),
				`action "`+name+`" fails: there is no file of that name in actions/`)
		}
	}
}

func (p *proofer) hookNames() []string {
	return p.rules.Hooks(p.relationNames(), p.declared([]string{"metadata.yaml", "charmcraft.yaml"}, "storage"))
}

// relationNames returns the charm's relations, and the one that every service has.
func (p *proofer) relationNames() []string {
	files := []string{"metadata.yaml", "charmcraft.yaml"}
	return append(p.declared(files, "provides", "requires", "peers"), "juju-info")
}

var ofRelation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-(relation|storage)-[a-z]+$`)
})

// checkFolder returns the names that have files in the directory. It warns of an executable file with
// nearly such a name, unless an examined link leads to it.
func (p *proofer) checkFolder(folder string, names []string) (found []string) {
	entries, _ := fs.ReadDir(p.root.FS(), folder)
	for _, e := range entries {
		if slices.Contains(names, e.Name()) {
			found = append(found, e.Name())
			p.examine(path.Join(folder, e.Name()))
		}
	}

	for _, e := range entries {
		name := e.Name()
		file := path.Join(folder, e.Name())
		meant := console.NearestWord(name, names)
		isNear := meant != "" && max(len(name)-len(meant), len(meant)-len(name)) < 3 ||
			ofRelation().MatchString(name)
		if isNear && !slices.Contains(names, name) && p.isExecutable(file) && !p.examined[p.target(file)] {
			p.add(Warning, file, 0, "it never runs: nothing of the charm is called so%s", suggest(name, names))
			p.mendName(file, names)
		}
	}

	return found
}

func (p *proofer) isExecutable(file string) bool {
	info, err := p.root.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// target returns where the links end that a file may be.
func (p *proofer) target(file string) string {
	path, _ := filepath.EvalSymlinks(filepath.Join(p.dir, file))
	return path
}

// examine checks a program of the charm once, even if several links lead to it. The file need not be
// executable, since deploy makes it so.
func (p *proofer) examine(file string) {
	data := p.read(file)
	target := p.target(file)
	if isExamined := p.examined[target]; isExamined && target != "" {
		return
	}

	p.examined[target] = true
	line, _, _ := bytes.Cut(data, []byte("\n"))
	words := interpreter(data)
	if len(words) > 0 && !p.isExecutable(file) {
		p.mendMode(file)
	}

	switch {
	case !p.has(file):
		p.add(Error, file, 0, "it is a link that leads nowhere in the charm, and fails")
	case len(data) == 0 || bytes.HasPrefix(data, []byte("\x7fELF")):
		// An empty file or a binary has no interpreter.
	case len(words) == 0:
		p.add(
			Warning,
			file,
			1,
			"it does not begin with #! and an interpreter, as in #!/bin/bash: here a shell runs it, Juju does not run it",
		)
	case bytes.HasSuffix(line, []byte("\r")):
		p.add(Error, file, 1,
			"its lines end in CRLF, so that it wants an interpreter %q: save it with LF alone", words[0]+"\r")
		p.mendLines(file, data)
	case bytes.Contains(data, []byte("\r\n")) && isShell(words):
		before, _, _ := bytes.Cut(data, []byte("\r\n"))
		p.add(Warning, file, 1+bytes.Count(before, []byte("\n")),
			"the line ends in CRLF, and the CR is part of its last word: save it with LF alone")
		p.mendLines(file, data)
	case !isThere(words[0]):
		usual := []string{"bash", "sh", "python3", "perl", "/bin/bash", "/bin/sh", "/usr/bin/python3", "/usr/bin/env"}
		p.add(Warning, file, 1, "the interpreter %q is not on this host%s", words[0], suggest(words[0], usual))
	}
}

func isThere(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// interpreter returns the words of a script's first line, without those of env.
func interpreter(data []byte) []string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	text, isScript := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(text)
	switch isOption := func(word string) bool {
		return strings.HasPrefix(word, "-") ||
			strings.Contains(word, "=")
	}; {
	case !isScript:
		return nil
	case len(words) > 1 && path.Base(words[0]) == "env" && isThere(words[0]):
		return slices.DeleteFunc(words[1:], isOption)
	}

	return words
}

func isShell(words []string) bool {
	return len(words) > 0 && slices.Contains([]string{"sh", "bash", "dash"}, path.Base(words[0]))
}
