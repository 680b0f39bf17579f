package charm

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzMeta(f *testing.F) {
	f.Add([]byte("name: blog\nseries: [a]\nprovides: {db: {interface: x, limit: 1}}\nrequires: {a: b}\npeers:\n  c: &c {interface: d}\n"))
	f.Add([]byte("name: a\nsubordinate: true\nrequires: {juju-info: {interface: juju-info, scope: container}}\n"))
	f.Add([]byte(bomb()))
	f.Add([]byte(tiny + "---\nname: other\n"))
	f.Add([]byte("---\n" + tiny + "...\n---\n"))
	f.Add([]byte("x: &m {name: q}\n<<: *m\nname: !!binary dA==\n"))
	f.Add([]byte(tiny + "requires:\n" + keys(300, "x")))
	f.Add([]byte("\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00t\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMeta(data)
		if err != nil {
			return
		}
		must(t, CheckName(m.Name))
		for _, rel := range m.Relations() {
			must(t, CheckRelation(rel.Name))
			must(t, CheckInterface(rel.Interface))
			if got, ok := m.Relation(rel.Name); !ok || got != rel {
				t.Errorf("relation %q is %+v and %+v", rel.Name, rel, got)
			}
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(options), []byte("title: x\nport: 1\ndebug: yes\n"))
	f.Add([]byte("options: {a: {type: float, default: 1e3}}"), []byte("blog: {a: &x 5}"))
	f.Fuzz(func(t *testing.T, config, values []byte) {
		c, err := parseConfig(config, "")
		if err != nil {
			return
		}
		defaults := c.Defaults()
		for name, value := range defaults {
			if got, err := c.Coerce(name, value); err != nil || !cmp.Equal(got, value) {
				t.Errorf("default %v of %q became %v, %v", value, name, got, err)
			}
		}
		set, err := c.ParseYAML(values, "blog")
		if err != nil {
			return
		}
		want := defaults
		for name, value := range set {
			if value != nil {
				want[name] = value
			}
		}
		if diff := cmp.Diff(want, c.Effective(set)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"mysql/0", "unit-mysql-0", "local:precise/mysql-7", "relation-7", "a-0/1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if service, n, err := ParseUnit(s); err == nil {
			must(t, CheckService(service))
			if UnitName(service, n) != s {
				t.Errorf("%q is also %q", s, UnitName(service, n))
			}
			if back, err := ParseUnitTag(UnitTag(s)); back != s || err != nil {
				t.Errorf("tag of %q is that of %q, %v", s, back, err)
			}
		}
		if name, err := ParseUnitTag(s); err == nil && UnitTag(name) != s {
			t.Errorf("tag %q is also %q", s, UnitTag(name))
		}
		if u, err := ParseURL(s); err == nil && u.String() != s {
			t.Errorf("URL %q is also %q", s, u)
		}
		if ref, err := ParseRef(s); err == nil {
			must(t, CheckName(ref.Name))
		}
	})
}

func FuzzArchive(f *testing.F) {
	f.Add(makeZip(f, zipped{name: "hooks/install", mode: 0o755}, zipped{name: "l", mode: fs.ModeSymlink | 0o777, content: "hooks/install"}))
	f.Add(makeZip(f, zipped{name: strings.Repeat("x", 256)}, zipped{name: "a\\b\nc"}, zipped{name: "A"}, zipped{name: "a"}))
	f.Add(makeZip(f, zipped{name: "../x"}, zipped{name: "d/", mode: fs.ModeDir | 0o755}, zipped{name: "dispatch"}))
	small := limits{packed: 1 << 16, unpacked: 1 << 16, files: 50}
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		to := filepath.Join(parent, "charm")
		size := int64(len(data))
		err := unpack(bytes.NewReader(data), size, to, UnpackOptions{Tools: []string{"relation-get"}, ToolsDir: "/tools"}, small)
		entries, readErr := os.ReadDir(parent)
		must(t, readErr)
		if err != nil {
			if len(entries) != 0 {
				t.Errorf("left behind: %v", entries)
			}
			return
		}
		if len(entries) != 1 {
			t.Errorf("written beside the charm: %v", entries)
		}
		c, err := ReadArchive(bytes.NewReader(data), size)
		if err != nil {
			return
		}
		again, err := ReadDir(to)
		must(t, err)
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(Charm{}, Meta{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".files" }, cmp.Ignore())); diff != "" {
			t.Errorf("archive and directory differ:\n%s", diff)
		}
	})
}
