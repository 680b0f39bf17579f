package charm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlatforms(t *testing.T) {
	all := []string{anyArch}
	for name, tt := range map[string]struct {
		files  map[string]string
		series []string
		archs  map[string][]string
	}{
		"series alone": {map[string]string{"metadata.yaml": "series: [focal, jammy]"}, []string{"focal", "jammy"}, nil},
		"manifest": {
			map[string]string{
				"metadata.yaml":   "series: [focal]",
				"charmcraft.yaml": "type: charm\nbases: [{name: ubuntu, channel: '18.04'}]",
				"manifest.yaml":   "bases:\n- {name: ubuntu, channel: 22.04/stable, architectures: [amd64]}\n- {name: ubuntu, channel: '22.04', architectures: [arm64]}\n- {name: ubuntu, channel: '20.04'}",
			},
			[]string{"jammy", "focal"}, map[string][]string{"jammy": {"amd64", "arm64"}, "focal": all},
		},
		"an empty manifest": {map[string]string{"metadata.yaml": "series: [focal]", "manifest.yaml": "charmcraft-version: 2"}, []string{"focal"}, nil},
		"bases, short": {
			map[string]string{"charmcraft.yaml": "bases: [{name: ubuntu, channel: '24.04', architectures: [amd64]}, {name: debian, channel: '12'}]"},
			[]string{"noble", "bookworm"}, map[string][]string{"noble": {"amd64"}, "bookworm": all},
		},
		"bases, long": {
			map[string]string{"charmcraft.yaml": "bases:\n- build-on: [{name: ubuntu, channel: '20.04'}]\n  run-on: [{name: ubuntu, channel: '22.04', architectures: [s390x, amd64]}, {name: centos, channel: '7'}]"},
			[]string{"jammy", "centos7"}, map[string][]string{"jammy": {"s390x", "amd64"}, "centos7": all},
		},
		"platforms with a base": {
			map[string]string{"charmcraft.yaml": "base: ubuntu@24.04\nplatforms:\n  amd64:\n  mine: {build-on: [amd64], build-for: arm64}"},
			[]string{"noble"}, map[string][]string{"noble": {"amd64", "arm64"}},
		},
		"platforms of many bases": {
			map[string]string{"charmcraft.yaml": "platforms:\n  ubuntu@22.04:amd64:\n  old: {build-on: ['ubuntu@20.04:amd64'], build-for: ['ubuntu@20.04:all']}\n  ubuntu@99.10:amd64:"},
			[]string{"focal", "jammy", "ubuntu9910"}, map[string][]string{"jammy": {"amd64"}, "focal": all, "ubuntu9910": {"amd64"}},
		},
		"platforms without a base": {map[string]string{"charmcraft.yaml": "platforms: {amd64: }"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"metadata.yaml": "name: tiny\n"}
			for file, text := range tt.files {
				files[file] += text + "\n"
			}
			c, err := ReadDir(makeDir(t, files))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if diff := cmp.Diff(tt.series, c.Meta.Series); diff != "" {
				t.Errorf("%s: -want +got:\n%s", name, diff)
			}
			if diff := cmp.Diff(tt.archs, c.Meta.Archs); diff != "" {
				t.Errorf("%s: -want +got:\n%s", name, diff)
			}
		})
	}
	m := Meta{Archs: map[string][]string{"jammy": {"amd64"}, "focal": {anyArch}}}
	if !m.SupportsArch("jammy", "amd64") || m.SupportsArch("jammy", "arm64") || !m.SupportsArch("focal", "arm64") || !m.SupportsArch("noble", "arm64") {
		t.Error("architectures go by series")
	}
	for _, bad := range []string{"bases: x", "bases: [{name: Ubuntu 22, channel: '1'}]"} {
		if _, err := ReadDir(makeDir(t, map[string]string{"metadata.yaml": "name: tiny", "manifest.yaml": bad})); err == nil {
			t.Errorf("manifest %q was read", bad)
		}
	}
}

func TestBaseOfSeries(t *testing.T) {
	for series, want := range map[string]string{"noble": "ubuntu@24.04", "bookworm": "debian@12", "fedora40": "fedora40@"} {
		if b := BaseOfSeries(series); b.Name+"@"+b.Version != want {
			t.Errorf("%s: %v", series, b)
		}
	}
	if got := SeriesOfBase("ubuntu@24.04"); got != "noble" {
		t.Errorf("ubuntu@24.04 is %s", got)
	}
}

// TestSourceTree checks that a source tree for charmcraft gets the file that charmcraft would add to the
// charm.
func TestSourceTree(t *testing.T) {
	program := map[string]string{"metadata.yaml": "name: tiny", "src/charm.py": "#!/usr/bin/python3\n"}
	for name, tt := range map[string]struct {
		more string
		want bool
	}{"nothing": {"README.md", true}, "plain packages": {"venv/ops/model.py", true}, "its own": {"dispatch", false}, "hooks": {"hooks/install", false},
		"hooks, and what charmcraft builds": {"hooks/install charmcraft.yaml", true}, "a folder": {"dispatch/x", false}} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for file := range strings.FieldsSeq(tt.more) {
				files[file] = "own: 1"
			}
			for file, text := range program {
				files[file] = text
			}
			data, _ := pack(t, makeDir(t, files), ArchiveOptions{})
			dir := filepath.Join(t.TempDir(), "charm")
			must(t, Unpack(bytes.NewReader(data), int64(len(data)), dir, UnpackOptions{}))
			text, _ := os.ReadFile(filepath.Join(dir, "dispatch"))
			info, err := os.Stat(filepath.Join(dir, "dispatch"))
			if isMade := string(text) == dispatchText(nil) && err == nil && info.Mode().Perm() == 0o755; isMade != tt.want {
				t.Errorf("%s: dispatch is %q, %v", name, text, info)
			}
		})
	}
}

// TestVirtualEnvironment checks that a source tree's program finds the packages of its virtual environment.
func TestVirtualEnvironment(t *testing.T) {
	data, _ := pack(t, makeDir(t, map[string]string{
		"metadata.yaml": "name: tiny", "src/charm.py": "#!/usr/bin/python3\n",
		"venv/lib/python3.12/site-packages/ops/model.py": "", "venv/lib/python3.x/site-packages/a.py": "",
	}), ArchiveOptions{})
	dir := filepath.Join(t.TempDir(), "charm")
	must(t, Unpack(bytes.NewReader(data), int64(len(data)), dir, UnpackOptions{}))
	text, _ := os.ReadFile(filepath.Join(dir, "dispatch"))
	if want := dispatchText([]string{"venv/lib/python3.12/site-packages"}); string(text) != want {
		t.Errorf("dispatch is %q, want %q", text, want)
	}
}

// TestArchivedSeries checks that the base of a charm can name each archived series.
func TestArchivedSeries(t *testing.T) {
	for _, series := range ArchivedSeries() {
		t.Run(series, func(t *testing.T) {
			b := BaseOfSeries(series)
			if b.Version == "" || SeriesOfBase(b.Name+"@"+b.Version) != series {
				t.Errorf("its base is %+v", b)
			}
		})
	}
}
