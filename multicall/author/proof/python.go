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
	// Imports are the imports of modules that this host's Python does not have. Name is the first part of a
	// module's name.
	Imports []struct {
		Name string
		Line int
	}
	// Calls are the calls of programs.
	Calls []struct {
		Line  int
		Argv  []string // a word that is known only at run time is empty
		Open  bool     // an unknown word can be an option, or can become several words
		Hooks []string // the hooks whose handlers make the call; empty if other code can also make the call
		Reads bool     // the handler reads facts about the hook from the environment
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
	texts     map[string]string // the text of each file, by path, at most maxModules of them
	isProgram map[string]bool   // the files that are programs, by path
	modules   map[string]bool   // the names by which the charm's files and directories can be imported
}

// checkPython checks programs in Python, and the modules of src and lib/charms, with Python's own parser. It
// returns the calls of hook tools. It does not run any part of the charm. If this host has no Python, or
// Python fails, it finds nothing and returns no calls.
func (p *proofer) checkPython(programs []*program) (calls []call) {
	sources := p.readPythonSources(programs)
	reports := readPython(sources.texts)
	for _, file := range slices.Sorted(maps.Keys(reports)) {
		report := reports[file]
		p.reportPython(file, report, sources)

		// report.Calls has only calls whose first word contains a dash. Such a word, if it is not a tool's name, is
		// more often data than a program.
		for _, c := range report.Calls {
			if slices.Contains(p.rules.Tools, c.Argv[0]) {
				calls = append(calls, call{file: file, line: c.Line, argv: c.Argv, isOpen: c.Open, hooks: c.Hooks, readsFacts: c.Reads})
			}
		}
	}

	return calls
}

// readPythonSources reads the programs that are in Python, and the modules of src and lib/charms, up to maxModules
// files. It also lists the names of all modules that the charm may have. Every file and directory of the charm
// counts as such a module, except a hidden directory with its contents, and venv/lib with its contents if no
// program uses it.
func (p *proofer) readPythonSources(programs []*program) pythonSources {
	sources := pythonSources{texts: map[string]string{}, isProgram: map[string]bool{}, modules: map[string]bool{}}
	add := func(file string, data []byte) {
		if len(sources.texts) < maxModules {
			sources.texts[file] = string(data)
		}
	}

	for _, s := range programs {
		words := interpreter(s.data)
		if len(words) > 0 && path.Base(words[0]) == "python3" {
			add(s.file, s.data)
			sources.isProgram[s.file] = true
		}
	}

	// WalkDir returns only the errors of its function, which returns none.
	fs.WalkDir(p.root.FS(), ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			// Go on without a directory that cannot be read.
			return nil
		}
		isHidden := e.IsDir() && strings.HasPrefix(path.Base(file), ".") && file != "."
		if isHidden {
			return fs.SkipDir
		}
		// A program that does not use the virtual environment cannot import modules from it.
		if file == "venv/lib" && !p.usesVirtualEnvironment(programs) {
			return fs.SkipDir
		}

		name, _, _ := strings.Cut(path.Base(file), ".")
		sources.modules[name] = true
		inSources := strings.HasPrefix(file, "src/") || strings.HasPrefix(file, "lib/charms/")
		if inSources && path.Ext(file) == ".py" && e.Type().IsRegular() {
			add(file, p.read(file))
		}

		return nil
	})

	return sources
}

// reportPython adds the findings of Python's report about a file. It adds one if Python cannot parse the
// file. For a program or a module in src, it adds one for each imported module that neither the charm nor this
// host has, once for the whole charm. For a dispatch file, it also checks the dictionaries of handlers.
func (p *proofer) reportPython(file string, report pythonFile, sources pythonSources) {
	isProgram := sources.isProgram[file]
	if report.Error != nil {
		level := Warning
		if isProgram || file == "src/charm.py" {
			level = Error
		}
		p.add(level, file, report.Error.Line, "Python cannot parse this file: %s", report.Error.Message)
	}

	if file == "dispatch" {
		p.checkTables(file, report)
	}

	// The charm may not use a library's functions that need a missing module.
	isLibrary := !isProgram && !strings.HasPrefix(file, "src/")
	if isLibrary {
		return
	}
	// report.Imports has only modules that this host does not have.
	for _, missing := range report.Imports {
		if !sources.modules[missing.Name] {
			p.addImport(file, missing.Line, missing.Name)
			// Report a module only once.
			sources.modules[missing.Name] = true
		}
	}
}

// checkTables warns of keys that misspell a hook or an action, or end like the name of a relation's or storage's
// hook. It checks only dictionaries of functions in which another key is the name of a hook, since these are
// tables of handlers.
func (p *proofer) checkTables(file string, report pythonFile) {
	hooks := p.hookNames()
	names := append(p.actionNames(), hooks...)
	for _, table := range report.Tables {
		isHook := func(key pythonKey) bool { return slices.Contains(hooks, key.Name) }
		if !slices.ContainsFunc(table, isHook) {
			continue
		}

		for _, key := range table {
			if slices.Contains(names, key.Name) {
				continue
			}

			similar := withSubject(key.Name, names, isSimilar)
			isMisspelling := console.NearestWord(key.Name, similar) != ""
			looksLikeHook := ofRelation().MatchString(key.Name)
			if isMisspelling || looksLikeHook {
				p.add(Warning, file, key.Line, "no hook or action of the charm has the name %q%s", key.Name, suggest(key.Name, similar))
			}
		}
	}
}

// addImport adds a finding about an imported module that neither the charm nor this host has. If the charm
// has files for a build, the build may add the module, so the finding is only for information. These files do
// not show whether the build adds the module, since they name distributions, whose names can differ from the
// names of their modules.
func (p *proofer) addImport(file string, line int, name string) {
	build := p.readBuildFiles()
	if len(build) == 0 {
		// Without files for a build, the suggestions are only modules that charms often import. The missing module
		// can be one of them.
		others := slices.DeleteFunc(p.pythonNames(build), func(other string) bool { return other == name })
		p.add(Warning, file, line, "neither the charm nor this host has a Python module %q%s", name, suggest(name, others))
		return
	}

	// Without a dispatch file, deploy can add one for src/charm.py, which finds packages in venv/.
	findsVenv := !p.has("dispatch") || bytes.Contains(p.read("dispatch"), []byte("venv"))
	switch {
	case !findsVenv || !p.has("src/charm.py"):
		// It is not certain that the charm's programs find packages in venv/.
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q: the build of the charm must add it", name)
	case p.has("requirements.txt"):
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q, and juju deploy builds nothing; "+
			"to add the packages to the charm: python3 -m pip install --target venv -r requirements.txt", name)
	default:
		p.add(Info, file, line, "neither the charm nor this host has a Python module %q, and juju deploy builds nothing; "+
			"to add packages to the charm: python3 -m pip install --target venv PACKAGE", name)
	}
}

// readBuildFiles returns the joined text of the files that the build of a charm reads. It returns nothing if
// the charm has no such files.
func (p *proofer) readBuildFiles() (text []byte) {
	for _, pattern := range []string{"*requirements*", "wheelhouse.txt", "pyproject.toml", "*.lock", "setup.*", "layer.yaml"} {
		// Glob fails only for an invalid pattern.
		files, _ := fs.Glob(p.root.FS(), pattern)
		for _, file := range files {
			text = append(append(text, '\n'), p.read(file)...)
		}
	}
	if p.has("charmcraft.yaml") {
		text = append(append(text, '\n'), p.read("charmcraft.yaml")...)
	}

	return text
}

// usesVirtualEnvironment reports whether the charm's programs find the packages in venv/lib, in a virtual
// environment of `python3 -m venv`. The dispatch file that deploy adds for src/charm.py finds these packages. A
// program of the charm counts as one that does if it contains site-packages or venv/bin.
func (p *proofer) usesVirtualEnvironment(programs []*program) bool {
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

// readPython returns Python's reports about the sources, by path. It returns nil if there are no sources, if
// this host has no Python, or if Python fails. Python gets the sources on stdin, and does not read the charm's
// directory.
func readPython(sources map[string]string) (reports map[string]pythonFile) {
	if len(sources) == 0 || !isInstalled("python3") {
		return nil
	}
	input, err := json.Marshal(sources)
	if err != nil {
		return nil
	}

	ctx, stop := context.WithTimeout(context.Background(), pythonTimeout)
	defer stop()
	// With -I, Python ignores modules of the user and of the working directory.
	cmd := exec.CommandContext(ctx, "python3", "-I", "-c", pythonReader)
	cmd.Env = childenv.New(cmd.Environ(), childenv.Program)
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	if err := json.Unmarshal(out, &reports); err != nil {
		return nil
	}

	return reports
}
