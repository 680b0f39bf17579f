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

// checkPrograms checks the charm's programs: its hooks and actions, and dispatch and src/charm.py, which handle
// all hooks and actions. If the charm has neither of these two, checkPrograms also warns if there are no hooks,
// and if an action has no file.
func (p *proofer) checkPrograms() {
	hasHandler := false
	for _, name := range []string{"dispatch", "src/charm.py"} {
		if p.has(name) {
			hasHandler = true
			p.checkProgram(name)
		}
	}

	hooks := p.checkFolder("hooks", p.hookNames())
	switch {
	case len(hooks) > 0 || hasHandler:
		// The charm has hooks.
	case len(p.documents) == 0:
		// No document could be read, which is already reported.
	case p.has("layer.yaml"):
		p.add(Warning, "layer.yaml", 0,
			"these are the sources of a reactive charm, without hooks: build the charm with charm-tools, and deploy the result")
	default:
		p.add(Warning, p.fileOf("metadata.yaml"), 0,
			"the charm has no hooks and no dispatch, so its units do nothing")
	}

	actions := p.actionNames()
	actionsWithFile := p.checkFolder("actions", actions)
	if hasHandler {
		// The program handles all actions.
		return
	}
	for _, name := range actions {
		// This key applies to all actions.
		if name == "additionalProperties" {
			continue
		}
		if !slices.Contains(actionsWithFile, name) {
			p.addLocated(Warning, p.fileOf("actions.yaml"),
				`action "`+name+`" fails: there is no file with that name in actions/`)
		}
	}
}

// hookNames returns the names of all hooks that the charm can have.
func (p *proofer) hookNames() []string {
	return p.rules.Hooks(p.relationNames(), p.declared([]string{"metadata.yaml", "charmcraft.yaml"}, "storage"))
}

// actionNames returns the names of the actions that the charm declares. They include all keys of actions.yaml, also
// additionalProperties, which is not an action.
func (p *proofer) actionNames() []string {
	actions := p.declared([]string{"charmcraft.yaml"}, "actions")
	for key := range pairs(p.documents["actions.yaml"]) {
		actions = append(actions, key.Value)
	}

	return actions
}

// relationNames returns the charm's relations, and juju-info, which every service has.
func (p *proofer) relationNames() []string {
	files := []string{"metadata.yaml", "charmcraft.yaml"}
	return append(p.declared(files, "provides", "requires", "peers"), "juju-info")
}

// ofRelation matches the end of the name of a hook that belongs to a relation or a storage.
var ofRelation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-(relation|storage)-[a-z]+$`)
})

// checkFolder checks the programs in a directory of hooks or actions. The argument names contains the names
// that the programs can have. It returns those names that have a file. It warns of any other executable file
// whose name is similar to one of the names, or ends like that of a relation's or storage's hook, and adds a
// mend if possible. It accepts such a file if the file is already checked, for example since a symlink with the
// right name leads to it.
func (p *proofer) checkFolder(folder string, names []string) (found []string) {
	// A charm need not have this directory.
	entries, _ := fs.ReadDir(p.root.FS(), folder)
	for _, e := range entries {
		if slices.Contains(names, e.Name()) {
			found = append(found, e.Name())
			p.checkProgram(path.Join(folder, e.Name()))
		}
	}

	for _, e := range entries {
		name := e.Name()
		file := path.Join(folder, name)
		if slices.Contains(names, name) || p.examined[p.target(file)] || !p.isExecutable(file) {
			continue
		}

		similar := withSubject(name, names, isSimilar)
		nearest := console.NearestWord(name, similar)
		// A name that is much longer or shorter is probably a file of its own.
		isMisspelling := nearest != "" && max(len(name)-len(nearest), len(nearest)-len(name)) < 3
		looksLikeHook := ofRelation().MatchString(dashed(name))
		if isMisspelling || looksLikeHook {
			p.add(Warning, file, 0, "this file never runs: no hook or action of the charm has this name%s", suggest(name, similar))
			p.mendName(file, names)
		}
	}

	return found
}

// withSubject returns the names without those whose subject differs from that of the name given. The subject of
// a hook's name is the relation or storage to which the hook belongs. Two subjects differ if matches returns
// false for them. Names without a subject always stay.
//
// Without this comparison, the long end of such names would hide that the subjects differ:
// db-relation-changed does not misspell web-relation-changed.
func withSubject(given string, names []string, matches func(subject, declared string) bool) []string {
	parts := strings.Split(dashed(given), "-")
	// The last two parts stand for an end such as relation-changed, which may be misspelled.
	subject := strings.Join(parts[:max(1, len(parts)-2)], "-")
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		declared := ofRelation().ReplaceAllString(name, "")
		hasSubject := declared != name
		return hasSubject && !matches(subject, declared)
	})
}

// dashed returns a file's name with dashes instead of underscores, if the name has no dashes. So a hook can
// be found by its name in Python, such as db_relation_changed.
func dashed(file string) string {
	if strings.Contains(file, "-") {
		return file
	}
	return strings.ReplaceAll(file, "_", "-")
}

// isSimilar reports whether the words are equal, or one can misspell the other.
func isSimilar(word, declared string) bool {
	return word == declared || console.NearestWord(word, []string{declared}) != ""
}

// isEqual reports whether the words are equal.
func isEqual(word, declared string) bool { return word == declared }

// isExecutable reports whether the path leads to a regular file that some user can execute.
func (p *proofer) isExecutable(file string) bool {
	info, err := p.root.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// target returns the path of a file after all symlinks are resolved, or "" if the file does not exist.
func (p *proofer) target(file string) string {
	path, _ := filepath.EvalSymlinks(filepath.Join(p.dir, file))
	return path
}

// checkProgram checks a program of the charm once, even if several symlinks lead to it. It reports only the
// first problem. A script that is not executable is not a problem, since deploy makes it executable, but
// checkProgram adds a mend for it.
func (p *proofer) checkProgram(file string) {
	// All symlinks to files that do not exist have the target "". Each is reported.
	if target := p.target(file); target != "" {
		if p.examined[target] {
			return
		}
		p.examined[target] = true
	}
	if !p.has(file) {
		p.add(Error, file, 0, "this is neither a file nor a symlink to a file in the charm, so it cannot run")
		return
	}

	data := p.read(file)
	words := interpreter(data)
	if len(words) > 0 && !p.isExecutable(file) {
		p.mendMode(file)
	}

	p.checkInterpreter(file, data, words)
}

// checkInterpreter checks a program's interpreter, and the ends of its lines. data is the program's text, and words
// is the result of the function interpreter for it. checkInterpreter reports only the first problem, and
// adds a mend if this is about CRLF.
func (p *proofer) checkInterpreter(file string, data []byte, words []string) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	isBinary := bytes.HasPrefix(data, []byte("\x7fELF"))
	switch {
	case len(data) == 0 || isBinary:
		// The program has no interpreter.
	case len(words) == 0:
		p.add(
			Warning,
			file,
			1,
			"this file does not begin with #! and an interpreter, such as #!/bin/bash: bijou runs it with a shell, but Juju cannot run it",
		)
	case bytes.HasSuffix(line, []byte("\r")):
		p.add(Error, file, 1,
			"the lines end in CRLF, so the system looks for an interpreter %q: save the file with LF only", words[0]+"\r")
		p.mendLines(file, data)
	case bytes.Contains(data, []byte("\r\n")) && isShell(words):
		// The finding is about the first line that ends in CRLF.
		before, _, _ := bytes.Cut(data, []byte("\r\n"))
		p.add(Warning, file, 1+bytes.Count(before, []byte("\n")),
			"the line ends in CRLF, so the CR becomes part of its last word: save the file with LF only")
		p.mendLines(file, data)
	case !isInstalled(words[0]):
		usual := []string{"bash", "sh", "python3", "perl", "/bin/bash", "/bin/sh", "/usr/bin/python3", "/usr/bin/env"}
		p.add(Warning, file, 1, "the interpreter %q is not on this host%s", words[0], suggest(words[0], usual))
	}
}

// isInstalled reports whether this host has the program, which is a name or a path.
func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// interpreter returns the words after #! in a script's first line, of which the first one is the interpreter.
// If an env of this host starts the interpreter, it leaves out env, and all words that are options or set
// variables. It returns no words if the first line does not begin with #!, or has nothing after it. The words
// have no CR.
func interpreter(data []byte) []string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	text, isScript := strings.CutPrefix(string(line), "#!")
	if !isScript {
		return nil
	}

	words := strings.Fields(text)
	// An env at a path that does not exist stays, so that it is reported as the missing interpreter.
	if len(words) > 1 && path.Base(words[0]) == "env" && isInstalled(words[0]) {
		return slices.DeleteFunc(words[1:], isEnvOption)
	}

	return words
}

// isEnvOption reports whether an argument of env is an option or sets a variable.
func isEnvOption(word string) bool {
	return strings.HasPrefix(word, "-") || strings.Contains(word, "=")
}

// isShell reports whether the interpreter is a shell. The argument words is the result of the function
// interpreter.
func isShell(words []string) bool {
	return len(words) > 0 && slices.Contains([]string{"sh", "bash", "dash"}, path.Base(words[0]))
}
