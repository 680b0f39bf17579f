package charm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDialect(t *testing.T) {
	meta := func(more string) map[string]string { return map[string]string{"metadata.yaml": tiny + more} }
	for name, c := range map[string]struct {
		files map[string]string
		want  Dialect
	}{
		"plain":                {nil, Classic},
		"one series":           {meta("series: precise\n"), Classic},
		"list of series":       {meta("series: [precise]\n"), Modern},
		"aliased series":       {meta("x: &x [precise]\nseries: *x\n"), Modern},
		"assumes":              {meta("assumes: [juju]\n"), Modern},
		"min-juju-version":     {meta("min-juju-version: 2.0\n"), Modern},
		"resources":            {meta("resources: {}\n"), Modern},
		"terms":                {meta("terms:\n"), Modern},
		"storage":              {meta("storage: {}\n"), Modern},
		"dispatch":             {map[string]string{"dispatch": ""}, Modern},
		"dispatch as a folder": {map[string]string{"dispatch/": ""}, Classic},
		"manifest":             {map[string]string{"manifest.yaml": ""}, Modern},
		"charmcraft beside":    {map[string]string{"charmcraft.yaml": "type: charm"}, Modern},
		"charmhelpers":         {map[string]string{"hooks/charmhelpers/core/__init__.py": ""}, Modern},
		"charmhelpers wheel":   {map[string]string{"wheelhouse/charmhelpers-0.6.2.tar.gz": ""}, Modern},
		"link to charmhelpers": {map[string]string{"lib/x/": "", "hooks/charmhelpers": "->../lib/x"}, Modern},
		"a file of that name":  {map[string]string{"charmhelpers": "", "notcharmhelpers/x": ""}, Classic},
		"asks for classic":     {meta("series: [a]\nhook-dialect: classic\n"), Classic},
		"asks for modern":      {meta("hook-dialect: modern\n"), Modern},
	} {
		t.Run(name, func(t *testing.T) {
			dir := makeDir(t, c.files)
			fromDir, err := ReadDir(dir)
			must(t, err)
			data, _ := pack(t, dir, ArchiveOptions{})
			fromArchive, err := ReadArchive(bytes.NewReader(data), int64(len(data)))
			must(t, err)
			a, mark := fromDir.Dialect()
			b, same := fromArchive.Dialect()
			if a != c.want || b != c.want || mark != same || mark == "" {
				t.Errorf("directory %s (%s), archive %s (%s), want %s", a, mark, b, same, c.want)
			}
		})
	}
}

// TestTwoFilesOfMetadata checks the source of a charm whose metadata is partly in charmcraft.yaml and partly
// in metadata.yaml.
func TestTwoFilesOfMetadata(t *testing.T) {
	c, err := ReadDir(makeDir(t, map[string]string{
		"metadata.yaml":   "name: tiny\nsummary: s\nprovides: {site: http}\n",
		"charmcraft.yaml": "type: charm\nname: other\nrequires: {db: mysql}\nconfig: {options: {port: {type: int, default: 80}}}\nactions: {hello: {}}\n",
	}))
	must(t, err)
	_, site := c.Meta.Declared["site"]
	_, db := c.Meta.Declared["db"]
	if c.Meta.Name != "tiny" || !site || !db || c.Config.Options["port"].Default != int64(80) || len(c.Actions) != 1 {
		t.Errorf("got %+v, %+v, %v", c.Meta, c.Config, c.Actions)
	}
}

func TestReadCharm(t *testing.T) {
	dir := makeDir(t, map[string]string{
		"metadata.yaml": "name: tiny\nrevision: 4\n", "config.yaml": "->etc/config", "etc/config": "options: {a: {type: int}}",
		"hooks/start": "", "hooks/install": "->start", "hooks/lib/x": "", "hooks/install~": "", "dispatch": "",
	})
	data, _ := pack(t, dir, ArchiveOptions{})
	fromDir, err := ReadDir(dir)
	must(t, err)
	fromArchive, err := ReadArchive(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	for _, c := range []*Charm{fromDir, fromArchive} {
		if diff := cmp.Diff([]string{"install", "start"}, c.Hooks()); diff != "" {
			t.Errorf("hooks (-want +got):\n%s", diff)
		}
		if !c.HasHook("install") || c.HasHook("lib") || c.HasHook("stop") || !c.HasDispatch() {
			t.Error("hooks are not what they are")
		}
		if c.Revision != 4 || c.Meta.Name != "tiny" || !cmp.Equal(c.Config.Names(), []string{"a"}) {
			t.Errorf("got revision %d, name %q, options %q", c.Revision, c.Meta.Name, c.Config.Names())
		}
	}
	must(t, WriteRevision(dir, 9))
	if c, err := ReadDir(dir); err != nil || c.Revision != 9 {
		t.Errorf("after WriteRevision: %+v, %v", c, err)
	}
}

func TestCharmcraftAlone(t *testing.T) {
	dir := makeDir(t, map[string]string{"charmcraft.yaml": "name: craft\nconfig: {options: {a: {type: int, default: 3}}}\n"})
	must(t, os.Remove(filepath.Join(dir, "metadata.yaml")))
	c, err := ReadDir(dir)
	must(t, err)
	d, mark := c.Dialect()
	if c.Meta.Name != "craft" || c.Config.Options["a"].Default != int64(3) || d != Modern || mark != "it has charmcraft.yaml" {
		t.Errorf("got %+v %+v %s %s", c.Meta, c.Config, d, mark)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files     map[string]string
		complaint string
	}{
		"bad metadata":  {map[string]string{"metadata.yaml": "name: X"}, "metadata.yaml: invalid charm name"},
		"bad config":    {map[string]string{"config.yaml": "options: {a: {type: list}}"}, `config.yaml: option "a"`},
		"big config":    {map[string]string{"config.yaml": strings.Repeat("#", MaxYAML+1)}, "config.yaml: too big: more than 1 MiB"},
		"metadata out":  {map[string]string{"metadata.yaml": "->/etc/hostname"}, "metadata.yaml: "},
		"metadata gone": {map[string]string{"metadata.yaml": "->nowhere"}, "metadata.yaml: "},
		"revision":      {map[string]string{"revision": "-1"}, "revision: revision -1 is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadDir(makeDir(t, c.files))
			if err == nil || !strings.Contains(err.Error(), c.complaint) || !strings.Contains(err.Error(), "cannot read charm") {
				t.Errorf("%s: got %v, want an error with %q", name, err, c.complaint)
			}
		})
	}
	if _, err := ReadDir(t.TempDir() + "/nosuch"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

func TestRepository(t *testing.T) {
	dir := t.TempDir()
	put := func(path, meta, revision string) {
		must(t, os.MkdirAll(filepath.Join(dir, path), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, path, "metadata.yaml"), []byte(meta), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, path, "revision"), []byte(revision), 0o644))
	}
	put("precise/mysql-old", "name: mysql", "3")
	put("precise/other", "name: mysql", "12")
	put("trusty/mysql", "name: mysql", "5")
	put("flat", "name: mysql\nseries: [noble]", "4")
	put("flat/hooks/inner", "name: mysql", "99")
	put("lucid/broken", "name: [", "1")
	put("lucid/twin-b", "name: twin", "1")
	put("lucid/twin-a", "name: twin", "1")
	put("lucid/near", "name: near", "1")
	put("zz-near", "name: near", "1")
	must(t, os.MkdirAll(filepath.Join(dir, "lucid", "nothing"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o644))

	for ref, want := range map[Ref]string{
		{"", "mysql", -1}:       "precise precise/other 12",
		{"precise", "mysql", 3}: "precise precise/mysql-old 3",
		{"trusty", "mysql", -1}: "trusty trusty/mysql 5",
		{"noble", "mysql", -1}:  " flat 4",
		{"", "twin", -1}:        "lucid lucid/twin-a 1",
		{"", "near", -1}:        " zz-near 1",
		{"natty", "mysql", -1}:  "",
		{"trusty", "mysql", 6}:  "",
		{"", "wordpress", -1}:   "",
		{"", "mysql-old", -1}:   "",
	} {
		got, err := Repository{Dir: dir}.Find(ref)
		if want == "" {
			if !errors.Is(err, ErrNotInRepository) || !strings.Contains(err.Error(), "lucid/broken") {
				t.Errorf("%+v: got %v, want ErrNotInRepository with the broken charm named", ref, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", ref, err)
			continue
		}
		rel, _ := filepath.Rel(dir, got.Path)
		if have := strings.Join([]string{got.Series, rel, strings.TrimSpace(string(revisionText(got.Revision)))}, " "); have != want {
			t.Errorf("%+v: got %q, want %q", ref, have, want)
		}
	}
	if _, err := (Repository{Dir: dir + "/nosuch"}).Find(Ref{Name: "a", Revision: -1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no repository: %v", err)
	}
}
