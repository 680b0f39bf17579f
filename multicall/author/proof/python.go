package proof

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/childenv"
)

//go:embed python.py
var pythonReader string

// pythonTimeout limits the time in which Python reads a charm.
const pythonTimeout = 20 * time.Second

// maxModules is the maximum number of a charm's Python files that are read.
const maxModules = 1000

// pythonFile is Python's report about a file.
type pythonFile struct {
	Error *struct {
		Line    int
		Message string
	}
	// Imports are the imports of modules that neither Python nor this host has. Name is the first part of a module's name.
	Imports []struct {
		Name string
		Line int
	}
	// Calls are the calls of programs. Words that are only known at run time are empty. Hooks are the events whose
	// handlers make the call, if nothing else makes it. Reads is set if the handler reads facts about the hook from the
	// environment.
	Calls []struct {
		Line  int
		Argv  []string
		Open  bool
		Hooks []string
		Reads bool
	}
	// Tables are the keys of the dictionaries whose values are functions.
	Tables [][]pythonKey
}

// pythonKey is a key of a dictionary.
type pythonKey struct {
	Name string
	Line int
}

// pythonSources are the Python sources of a charm.
type pythonSources struct {
	texts     map[string]string // the text of each file, at most maxModules of them
	isProgram map[string]bool
	modules   map[string]bool // the names that the charm's files and directories have as modules
}

// checkPython checks programs in Python and the modules of src and lib by Python's own parser, if this host
// has Python. It runs nothing of the charm. It returns the calls of hook tools.
func (p *proofer) checkPython(programs []*program) (calls []call) {
	files := p.readPythonSources(programs)
	all := readPython(files.texts)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		found := all[file]
		p.reportPython(file, found, files)

		// Other words with a dash are more often data than programs.
		for _, c := range found.Calls {
			if slices.Contains(p.rules.Tools, c.Argv[0]) {
				calls = append(calls, call{file: file, line: c.Line, argv: c.Argv, isOpen: c.Open, hooks: c.Hooks, readsFacts: c.Reads})
			}
		}
	}

	return calls
}

// readPythonSources reads those of the programs that are in Python, and the modules of src and lib.
func (p *proofer) readPythonSources(programs []*program) pythonSources {
	files := pythonSources{texts: map[string]string{}, isProgram: map[string]bool{}, modules: map[string]bool{}}
	add := func(file string, data []byte) {
		if len(files.texts) < maxModules {
			files.texts[file] = string(data)
		}
	}

	for _, s := range programs {
		words := interpreter(s.data)
		if len(words) > 0 && path.Base(words[0]) == "python3" {
			add(s.file, s.data)
			files.isProgram[s.file] = true
		}
	}

	fs.WalkDir(p.root.FS(), ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			// A file that cannot be read is not a module.
			return nil
		case e.IsDir() && strings.HasPrefix(path.Base(file), ".") && file != ".":
			return fs.SkipDir
		case file == "venv/lib" && !p.usesEnvironment(programs):
			return fs.SkipDir
		}

		name, _, _ := strings.Cut(path.Base(file), ".")
		files.modules[name] = true
		inSources := strings.HasPrefix(file, "src/") || strings.HasPrefix(file, "lib/charms/")
		if inSources && path.Ext(file) == ".py" && e.Type().IsRegular() {
			add(file, p.read(file))
		}

		return nil
	})

	return files
}

// reportPython adds a finding if Python cannot read the file, and one for each import that the charm does not have.
func (p *proofer) reportPython(file string, found pythonFile, files pythonSources) {
	isProgram := files.isProgram[file]
	if found.Error != nil {
		level := Warning
		if isProgram || file == "src/charm.py" {
			level = Error
		}
		p.add(level, file, found.Error.Line, "Python cannot parse this file: %s", found.Error.Message)
	}

	if file == "dispatch" {
		p.checkTables(file, found)
	}

	for _, i := range found.Imports {
		if !files.modules[i.Name] && (isProgram || strings.HasPrefix(file, "src/")) {
			p.addImport(file, i.Line, i.Name)
			// Report a module only once.
			files.modules[i.Name] = true
		}
	}
}

// checkTables warns of keys that misspell a hook or action, in each dictionary that has the name of a hook as well.
func (p *proofer) checkTables(file string, found pythonFile) {
	hooks := p.hookNames()
	names := append(p.actionNames(), hooks...)
	for _, table := range found.Tables {
		isHook := func(key pythonKey) bool { return slices.Contains(hooks, key.Name) }
		if !slices.ContainsFunc(table, isHook) {
			continue
		}

		for _, key := range table {
			similar := withSubject(key.Name, names, isSimilar)
			isNear := console.NearestWord(key.Name, similar) != "" || ofRelation().MatchString(key.Name)
			if isNear && !slices.Contains(names, key.Name) {
				p.add(Warning, file, key.Line, "no hook or action of the charm has the name %q%s", key.Name, suggest(key.Name, similar))
			}
		}
	}
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

	switch {
	case len(build) == 0:
		p.add(Warning, file, line, "neither the charm nor this host has a Python module %q%s", name,
			suggest(name, slices.DeleteFunc(p.pythonNames(build), func(other string) bool { return other == name })))
	case p.has("dispatch") && !bytes.Contains(p.read("dispatch"), []byte("venv")) || !p.has("src/charm.py"):
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q: the build of the charm must add it", name)
	case p.has("requirements.txt"):
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q, and juju deploy builds nothing; "+
			"to add the packages to the charm: python3 -m pip install --target venv -r requirements.txt", name)
	default:
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q, and juju deploy builds nothing; "+
			"to add packages to the charm: python3 -m pip install --target venv PACKAGE", name)
	}
}

// usesEnvironment reports whether the charm's programs find the packages in a virtual environment of
// `python3 -m venv`. The dispatch file that deploy adds lets them find these packages.
func (p *proofer) usesEnvironment(programs []*program) bool {
	if p.has("src/charm.py") && !p.has("dispatch") {
		return true
	}
	return slices.ContainsFunc(programs, func(s *program) bool {
		return bytes.Contains(s.data, []byte("site-packages")) || bytes.Contains(s.data, []byte("venv/bin"))
	})
}

// pythonNames returns the words in the files of the charm's build, and modules that charms often import.
func (p *proofer) pythonNames(build []byte) []string {
	words := regexp.MustCompile(`[a-z][a-z0-9_]+`).FindAllString(strings.ToLower(string(build)), -1)
	slices.Sort(words)
	return append(slices.Compact(words), "json", "logging", "subprocess", "socket", "pathlib", "charmhelpers", "yaml")
}

// readPython returns Python's report about each source. It returns nothing if this host has no Python, or if Python
// fails. Python reads the sources from stdin, and not the charm's directory. With -I it ignores modules of the user
// and of the working directory.
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
