package proof

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"bijou/state/childenv"
)

//go:embed python.py
var pythonReader string

// pythonTimeout bounds how long Python may read a charm.
const pythonTimeout = 20 * time.Second

// maxModules bounds how many files of Python are read of a charm.
const maxModules = 1000

// pythonFile is what Python says of a file.
type pythonFile struct {
	Error *struct {
		Line    int
		Message string
	}
	Imports []struct { // of modules that neither Python nor this host has, by their first name
		Name string
		Line int
	}
	Calls []struct { // all words of which are known that are not ""
		Line int
		Argv []string
		Open bool
	}
}

// checkPython checks programs in Python and the modules of src and lib by Python's own parser, if this host
// has Python. It runs nothing of the charm. It returns the calls of hook tools.
func (p *proofer) checkPython(programs []*program) (calls []call) {
	sources := map[string]string{}
	isProgram := map[string]bool{}
	add := func(file string, data []byte) {
		if len(sources) < maxModules {
			sources[file] = string(data)
		}
	}

	for _, s := range programs {
		words := interpreter(s.data)
		if len(words) > 0 && path.Base(words[0]) == "python3" {
			add(s.file, s.data)
			isProgram[s.file] = true
		}
	}

	modules := map[string]bool{}
	fs.WalkDir(p.root.FS(), ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case e.IsDir() && strings.HasPrefix(path.Base(file), ".") && file != ".":
			return fs.SkipDir
		}

		name, _, _ := strings.Cut(path.Base(file), ".")
		modules[name] = true
		inSources := strings.HasPrefix(file, "src/") || strings.HasPrefix(file, "lib/charms/")
		if inSources && path.Ext(file) == ".py" && e.Type().IsRegular() {
			add(file, p.read(file))
		}

		return nil
	})

	for file, found := range readPython(sources) {
		if found.Error != nil {
			level := Warning
			if isProgram[file] || file == "src/charm.py" {
				level = Error
			}
			p.add(level, file, found.Error.Line, "Python cannot read it: %s", found.Error.Message)
		}

		for _, i := range found.Imports {
			if !modules[i.Name] && (isProgram[file] || strings.HasPrefix(file, "src/")) {
				p.addImport(file, i.Line, i.Name)
			}
		}

		// Other words with a dash are data more often than programs.
		for _, c := range found.Calls {
			if slices.Contains(p.rules.Tools, c.Argv[0]) {
				calls = append(calls, call{file: file, line: c.Line, argv: c.Argv, isOpen: c.Open})
			}
		}
	}

	return calls
}

// addImport adds a finding about an imported module that neither the charm nor this host has. A charm's
// build can bring the module. The build's files name distributions, whose names can differ from their
// modules'.
func (p *proofer) addImport(file string, line int, name string) {
	var build []byte
	for _, pattern := range []string{"*requirements*", "wheelhouse.txt", "pyproject.toml", "*.lock", "setup.*", "layer.yaml"} {
		files, _ := fs.Glob(p.root.FS(), pattern)
		for _, file := range files {
			build = append(append(build, '\n'), p.read(file)...)
		}
	}
	if p.has("charmcraft.yaml") {
		build = append(append(build, '\n'), p.read("charmcraft.yaml")...)
	}

	normal := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	isNamed := bytes.Contains(bytes.ReplaceAll(bytes.ToLower(build), []byte("_"), []byte("-")), []byte(normal))
	switch {
	case isNamed:
		// The charm's build brings the module.
	case len(build) > 0:
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q: its build must bring it", name)
	default:
		p.add(Warning, file, line, "neither the charm nor this host has a Python module %q%s", name,
			suggest(name, slices.DeleteFunc(p.pythonNames(build), func(other string) bool { return other == name })))
	}
}

// pythonNames returns the words of what builds the charm, and modules that charms import.
func (p *proofer) pythonNames(build []byte) []string {
	words := regexp.MustCompile(`[a-z][a-z0-9_]+`).FindAllString(strings.ToLower(string(build)), -1)
	slices.Sort(words)
	return append(slices.Compact(words), "json", "logging", "subprocess", "socket", "pathlib", "charmhelpers", "yaml")
}

// readPython returns Python's view of the sources, by file; nothing if there is no Python, or if it does
// not answer. Python has no access to the charm: the sources come by stdin, and -I keeps modules of users
// and directories out.
func readPython(sources map[string]string) (found map[string]pythonFile) {
	input, err := json.Marshal(sources)
	if err != nil || len(sources) == 0 || !isThere("python3") {
		return nil
	}

	ctx, stop := context.WithTimeout(context.Background(), pythonTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, "python3", "-I", "-c", pythonReader)
	cmd.Env = childenv.New(cmd.Environ(), childenv.Program)
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &found) != nil {
		return nil
	}

	return found
}
