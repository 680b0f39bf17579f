package charmsource_test

import (
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/testscripts/fakes/charmhub"
)

// sourceFixture is a source with one charm, db.
type sourceFixture struct {
	charmsource.Source
	name     string // the name of the charm in the source
	missing  string // the name of a charm that the source does not have
	revision int
	spoil    func(f charmsource.File) // makes later fetches of the file fail
}

func wish(name string) charmsource.Wish { return amd64(charmsource.Wish{Name: name}) }

// sources lists the sources that must keep the promises of [charmsource.Source].
func sources() map[string]func(t *testing.T) sourceFixture {
	return map[string]func(t *testing.T) sourceFixture{
		"store": func(t *testing.T) sourceFixture {
			s := newStore(t)
			return sourceFixture{newClient(t, s), "db", "nosuch", 8, func(charmsource.File) {
				if err := s.Misbehave(charmhub.Cut, -1); err != nil {
					t.Fatal(err)
				}
			}}
		},
		"repository": func(t *testing.T) sourceFixture {
			repository := t.TempDir()
			writeCharm(t, filepath.Join(repository, "noble", "db"), 8)
			return newLocalFixture(t, repository, "noble/db", "noble/nosuch")
		},
		"directory": func(t *testing.T) sourceFixture {
			dir := t.TempDir()
			writeCharm(t, filepath.Join(dir, "db"), 8)
			return newLocalFixture(t, "", filepath.Join(dir, "db"), filepath.Join(dir, "nosuch"))
		},
		"archive": func(t *testing.T) sourceFixture {
			dir := t.TempDir()
			writeArchive(t, filepath.Join(dir, "db.charm"), 8)
			return newLocalFixture(t, "", filepath.Join(dir, "db.charm"), filepath.Join(dir, "nosuch.charm"))
		},
	}
}

func newLocalFixture(t *testing.T, repository, name, missing string) sourceFixture {
	local := &charmsource.Local{Repository: repository, Scratch: t.TempDir()}
	return sourceFixture{local, name, missing, 8, func(f charmsource.File) {
		if err := syscall.Mkfifo(filepath.Join(f.Charm.Path, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
	}}
}

// writeCharm writes the charm db into a directory.
func writeCharm(t *testing.T, dir string, revision int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte("name: db\nsummary: s\ndescription: d\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := charm.WriteRevision(dir, revision); err != nil {
		t.Fatal(err)
	}
}

// writeArchive writes an archive of the charm db.
func writeArchive(t *testing.T, path string, revision int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	writeCharm(t, dir, revision)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := charm.Archive(dir, file, charm.ArchiveOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestSources checks that each source keeps the promises of [charmsource.Source].
func TestSources(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, s sourceFixture){
		"answers in the order of the wishes": checkOrder,
		"a revision":                         checkRevision,
		"a whole file":                       checkWholeFile,
		"a file that cannot be fetched":      checkNoFile,
	} {
		for kind, newSource := range sources() {
			t.Run(name+" of a "+kind, func(t *testing.T) { test(t, newSource(t)) })
		}
	}
}

func checkOrder(t *testing.T, s sourceFixture) {
	answers, err := s.Resolve(t.Context(), wish(s.name), wish(s.missing), wish(s.name))
	if err != nil || len(answers) != 3 {
		t.Fatalf("%v, %v", answers, err)
	}
	for i, isThere := range []bool{true, false, true} {
		r := answers[i].Release
		switch {
		case !isThere && !errors.Is(answers[i].Err, charmsource.ErrNotFound):
			t.Errorf("answer %d has error %v, want ErrNotFound", i, answers[i].Err)
		case isThere && (answers[i].Err != nil || r.Type != charmsource.TypeCharm || r.Name != "db" || r.Revision != s.revision):
			t.Errorf("answer %d: %+v", i, answers[i])
		}
	}
}

func checkRevision(t *testing.T, s sourceFixture) {
	w := wish(s.name)
	w.Revision = s.revision
	if r, err := charmsource.ResolveOne(t.Context(), s, w); err != nil || r.Revision != s.revision {
		t.Errorf("revision %d, %v", r.Revision, err)
	}

	w.Revision = 900
	_, err := charmsource.ResolveOne(t.Context(), s, w)
	if _, isNone := errors.AsType[*charmsource.NoReleaseError](err); !isNone && !errors.Is(err, charmsource.ErrNotFound) {
		t.Errorf("error %v, want one that says that there is no such revision", err)
	}
}

// checkWholeFile checks that two fetches write the same bytes, and that a fetch replaces an existing file.
func checkWholeFile(t *testing.T, s sourceFixture) {
	r, err := charmsource.ResolveOne(t.Context(), s, wish(s.name))
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "charm")
	var sums []string
	for range 2 {
		sum, err := s.Fetch(t.Context(), r.File, path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := sha512.Sum384(data)
		sums = append(sums, sum, hex.EncodeToString(want[:]))
	}
	if sums[0] != sums[1] || sums[1] != sums[2] || sums[2] != sums[3] {
		t.Errorf("sums: %q", sums)
	}
	checkFiles(t, filepath.Dir(path), "charm")
}

// checkNoFile checks that a failed fetch does not change an existing file.
func checkNoFile(t *testing.T, s sourceFixture) {
	r, err := charmsource.ResolveOne(t.Context(), s, wish(s.name))
	if err != nil {
		t.Fatal(err)
	}
	s.spoil(r.File)

	path := filepath.Join(t.TempDir(), "charm")
	if _, err := s.Fetch(t.Context(), r.File, path); err == nil {
		t.Error("no error")
	}
	checkFiles(t, filepath.Dir(path))

	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), r.File, path); err == nil {
		t.Error("no error")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
	checkFiles(t, filepath.Dir(path), "charm")
}

func checkFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLocalRevision checks that an archive contains the revision that the caller has chosen, or else the
// charm's own revision.
func TestLocalRevision(t *testing.T) {
	for kind, newSource := range sources() {
		if kind == "store" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			s := newSource(t)
			r, err := charmsource.ResolveOne(t.Context(), s, wish(s.name))
			if err != nil {
				t.Fatal(err)
			}
			if r.File.SHA256 != "" || r.File.Size != 0 {
				t.Errorf("the file has a sum before its revision is chosen: %+v", r.File)
			}

			for chosen, want := range map[int]int{0: 8, 3: 3, 12: 12} {
				path := filepath.Join(t.TempDir(), "charm")
				f := r.File
				f.Revision = chosen
				if _, err := s.Fetch(t.Context(), f, path); err != nil {
					t.Fatal(err)
				}
				c, err := charm.ReadPacked(path, "", nil)
				if err != nil || c.Revision != want {
					t.Errorf("revision %d, want %d; %v", c.Revision, want, err)
				}
			}
		})
	}
}

// TestLocalResolve checks the facts about a valid charm on this host, and the errors about invalid ones.
func TestLocalResolve(t *testing.T) {
	dir := t.TempDir()
	writeCharm(t, filepath.Join(dir, "db"), 1)
	writeCharm(t, filepath.Join(dir, "noble", "db-new"), 5)
	writeCharm(t, filepath.Join(dir, "noble", "db-old"), 4)
	writeArchive(t, filepath.Join(dir, "db.charm"), 2)
	if err := os.WriteFile(filepath.Join(dir, "broken.charm"), []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		name         string
		repository   string
		wish         charmsource.Wish
		series, path string // the charm's series and its path below dir
		revision     int
		err          string // the error after the name of dir
	}{
		{"the greatest revision", dir, charmsource.Wish{Name: "db"}, "noble", "noble/db-new", 5, ""},
		{"a series in the name", dir, charmsource.Wish{Name: "noble/db"}, "noble", "noble/db-new", 5, ""},
		{"a series beside the name", dir, charmsource.Wish{Name: "db", Series: "noble"}, "noble", "noble/db-new", 5, ""},
		{"a charm for several series", dir, charmsource.Wish{Name: "db", Series: "jammy"}, "jammy", "db", 1, ""},
		{"a revision in the name", dir, charmsource.Wish{Name: "local:db-4"}, "noble", "noble/db-old", 4, ""},
		{"a revision beside the name", dir, charmsource.Wish{Name: "db", Revision: 1}, "", "db", 1, ""},
		{"no such revision", dir, charmsource.Wish{Name: "db", Revision: 3}, "", "", 0, `": no such charm in the repository`},
		{"a name of the store", dir, charmsource.Wish{Name: "ch:db"}, "", "", 0, `cannot use charm URL "ch:db"`},
		{"a path", "", charmsource.Wish{Name: dir + "/noble/db-old/"}, "", "noble/db-old", 4, ""},
		{"an archive", "", charmsource.Wish{Name: dir + "/db.charm"}, "", "db.charm", 2, ""},
		{"a different revision", "", charmsource.Wish{Name: dir + "/db", Revision: 2}, "", "", 0, `charm "db" has no revision 2`},
		{"a broken archive", "", charmsource.Wish{Name: dir + "/broken.charm"}, "", "", 0, `/broken.charm": cannot use charm archive: `},
		{"no charm", "", charmsource.Wish{Name: dir + "/noble"}, "", "", 0, `/noble": this is not a charm: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &charmsource.Local{Repository: tt.repository, Scratch: t.TempDir()}
			r, err := charmsource.ResolveOne(t.Context(), s, tt.wish)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f := r.File; r.Revision != tt.revision || f.Charm.Series != tt.series || f.URL != filepath.Join(dir, tt.path) {
				t.Errorf("revision %d of series %q in %s", r.Revision, f.Charm.Series, f.URL)
			}
		})
	}
}
