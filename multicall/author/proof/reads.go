package proof

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"

	"gopkg.in/yaml.v3"
)

// Read is a call of relation-get that reads one setting of the hook's own relation.
type Read struct {
	File  string // below the charm's directory
	Line  int
	Key   string
	Hooks []string // the hooks whose programs or handlers make the call, as far as they are known
}

// Reads returns the calls of relation-get in the charm's programs that read one setting of the hook's own
// relation, sorted by file and line. It leaves out calls that name a relation, calls that name a unit, which
// can be one of the charm's own, and calls whose key is known only at run time. It returns an error only if it
// cannot open the directory.
func Reads(dir string, r Rules) (reads []Read, _ error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read charm: %w", err)
	}
	defer root.Close()

	p := &proofer{rules: r, dir: dir, root: root, documents: map[string]*yaml.Node{}, examined: map[string]bool{}}
	programs := p.findPrograms()
	calls, functions := p.findCalls(programs)
	for _, c := range calls {
		// A script can declare a function with the tool's name.
		if c.argv[0] != "relation-get" || functions[c.argv[0]] {
			continue
		}
		// An open call may name a relation or a unit at run time.
		if c.isOpen || slices.ContainsFunc(c.argv[1:], namesRelation) {
			continue
		}
		// With a second argument, the call names a unit. Without arguments, it names no key.
		args, err := r.CheckCall(c.argv)
		if err != nil || len(args) != 1 {
			continue
		}

		key := args[0]
		readsAll := key == "-"
		if key == "" || readsAll {
			continue
		}

		hooks := append(c.hooks, hooksOf(programs, c.file)...)
		reads = append(reads, Read{File: c.file, Line: c.line, Key: key, Hooks: hooks})
	}

	slices.SortStableFunc(reads, func(a, b Read) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return reads, nil
}

// hooksOf returns the hooks of which the file is the program.
func hooksOf(programs []*program, file string) (hooks []string) {
	for _, s := range programs {
		if s.file != file {
			continue
		}
		for _, name := range s.names {
			if path.Dir(name) == "hooks" {
				hooks = append(hooks, path.Base(name))
			}
		}
	}
	return hooks
}
