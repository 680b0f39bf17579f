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
	Hooks []string // the hooks whose programs or handlers make the call
}

// Reads returns the calls of relation-get in the programs of the charm's hooks, sorted by file and line. It leaves out
// calls that name a relation or a unit, which can be the charm's own, and calls whose key is only known at run time.
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
		if c.argv[0] != "relation-get" || functions[c.argv[0]] || c.isOpen || slices.ContainsFunc(c.argv[1:], namesRelation) {
			continue
		}
		args, err := r.CheckCall(c.argv)
		if err != nil || len(args) != 1 || args[0] == "" || args[0] == "-" {
			continue
		}

		read := Read{File: c.file, Line: c.line, Key: args[0], Hooks: c.hooks}
		for _, s := range programs {
			for _, name := range s.names {
				if s.file == c.file && path.Dir(name) == "hooks" {
					read.Hooks = append(read.Hooks, path.Base(name))
				}
			}
		}
		reads = append(reads, read)
	}

	slices.SortStableFunc(reads, func(a, b Read) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return reads, nil
}
