package statetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/charm"
)

// Files are a charm's files by path. Those in hooks/ are executable.
type Files map[string]string

// MySQL returns a charm that provides a database and has a peer relation.
func MySQL() Files {
	return Files{
		"metadata.yaml":                "name: mysql\nsummary: s\ndescription: d\nprovides:\n  server: mysql\npeers:\n  cluster: mysql-ha\n",
		"config.yaml":                  "options:\n  tuning: {type: string, default: safe}\n  max-connections: {type: int, default: -1}\n  ratio: {type: float}\n  debug: {type: boolean}\n",
		"revision":                     "3\n",
		"hooks/install":                "#!/bin/sh\n",
		"hooks/server-relation-joined": "#!/bin/sh\nrelation-set user=root\n",
	}
}

// WordPress returns a charm that requires a database.
func WordPress() Files {
	return Files{
		"metadata.yaml": "name: wordpress\nsummary: s\ndescription: d\nrequires:\n  db: mysql\nprovides:\n  website: http\n",
		"config.yaml":   "options:\n  blog-title: {type: string, default: My Title}\n",
		"hooks/install": "#!/bin/sh\n",
	}
}

// Actor returns a charm with an action and a resource.
func Actor() Files {
	f := Meta("actor", "resources: {site: {type: file, filename: site.zip}}\n")
	f["actions.yaml"] = "backup:\n  params:\n    level: {type: integer, default: 3}\n  additionalProperties: false\n"
	return f
}

// Meta returns a charm that contains only this metadata. It adds the line name: at the beginning.
func Meta(name, metadata string) Files {
	return Files{"metadata.yaml": fmt.Sprintf("name: %s\nsummary: s\ndescription: d\n%s", name, metadata)}
}

// Write creates a directory and writes a charm into it.
func (f Files) Write(t testing.TB, dir string) {
	t.Helper()
	for name, content := range f {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "hooks/") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// AddCharm adds a charm that consists of these files to the environment, with its archive.
func AddCharm(t testing.TB, st *state.State, f Files) state.Charm {
	t.Helper()
	dir := t.TempDir()
	f.Write(t, dir)
	return AddCharmDir(t, st, dir)
}

// AddCharmDir adds the charm in a directory to the environment, with its archive.
func AddCharmDir(t testing.TB, st *state.State, dir string) state.Charm {
	t.Helper()
	c, err := charm.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := charm.Archive(dir, &archive, charm.ArchiveOptions{}); err != nil {
		t.Fatal(err)
	}
	sum, size, err := st.PutBlob(t.Context(), &archive)
	if err != nil {
		t.Fatal(err)
	}
	url := charm.URL{Series: Environment().DefaultSeries, Name: c.Meta.Name, Revision: c.Revision}
	record := state.NewCharm(url, c, sum, size)
	Update(t, st, func(tx *state.Tx) error { return tx.AddCharm(record) })
	return record
}

// AddService adds a charm that consists of these files, and deploys it under its own name with the given
// number of units. The units are placed as the provider prefers.
func AddService(t testing.TB, st *state.State, f Files, units int) []state.Unit {
	t.Helper()
	c := AddCharm(t, st, f)
	return AddServiceOf(t, st, c, c.Meta.Name, units)
}

// AddServiceOf deploys a charm that was added before.
func AddServiceOf(t testing.TB, st *state.State, c state.Charm, name string, units int) []state.Unit {
	t.Helper()
	Update(t, st, func(tx *state.Tx) error {
		_, err := tx.AddService(state.Service{Name: name, Charm: c.URL.String()}, nil)
		return err
	})
	added, err := st.AddUnits(t.Context(), name, units, state.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// Relate relates two services like `juju integrate A B`.
func Relate(t testing.TB, st *state.State, a, b string) (r state.Relation) {
	t.Helper()
	Update(t, st, func(tx *state.Tx) error {
		eps, err := tx.InferEndpoints(a, b)
		if err == nil {
			r, err = tx.AddRelation(eps...)
		}
		return err
	})
	return r
}

// Pair sets up the usual start of a test: mysql/0 and wordpress/0 on machine 0, related to each other.
func Pair(t testing.TB, st *state.State) state.Relation {
	t.Helper()
	AddService(t, st, MySQL(), 1)
	AddService(t, st, WordPress(), 1)
	return Relate(t, st, "wordpress", "mysql")
}

// Enter makes a unit a member of a relation.
func Enter(t testing.TB, st *state.State, id int, unit string, settings map[string]string) {
	t.Helper()
	Update(t, st, func(tx *state.Tx) error { return tx.EnterRelation(id, unit, settings) })
}

// Claim claims a machine for a process in folder. Each call stands for a new process, and a later
// call may take over the claim.
func Claim(t testing.TB, st *state.State, machine, folder string) *state.Claim {
	t.Helper()
	c, err := st.TakeClaim(t.Context(), machine, state.Claimant{Holder: state.Holder{Host: "host", Folder: folder, Start: rand.Text()}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Session returns a session with these agents announced. It ends with the test.
func Session(t testing.TB, st *state.State, agents ...string) *state.Session {
	t.Helper()
	s, err := st.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.WithoutCancel(t.Context())) })
	for _, agent := range agents {
		if err := state.Announce(t.Context(), s, st.Update, agent); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
