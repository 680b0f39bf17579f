package release

import (
	"archive/tar"
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// TestDefaultManifest checks the nine components of a boot server and their order. CKE stops before
// everything else.
func TestDefaultManifest(t *testing.T) {
	m, err := DefaultManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, s := range m.Steps() {
		got = append(got, s.Name+" "+string(s.Component.Strategy))
		if s.Number != i+1 {
			t.Errorf("step %d of the list is number %d", i+1, s.Number)
		}
	}
	want := []string{
		"cke/stop stop-all", "cke/update stop-all", "vault/stop stop-all", "vault/update stop-all", "etcd/update rolling", "sabakan/update any",
		"sabakan-contents/update leader-once", "cke-contents/update leader-once", "setup-hw/update any", "serf/update rolling", "etcdpasswd/update any",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	vault := m.Components[1].AfterStart
	if diff := cmp.Diff(&AfterStart{Command: []string{"vault", "operator", "unseal"}, EachLineOf: "/etc/neco/vault-unseal-keys"}, vault); diff != "" {
		t.Error(diff)
	}
}

func TestReadManifest(t *testing.T) {
	data, err := os.ReadFile("testdata/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadManifest("manifest.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	want := Manifest{Version: "2018.11.07-1", Digest: got.Digest, Components: []Component{
		{Name: "cke", Strategy: StopAll, Services: []string{"cke.service"}, Artifact: &Artifact{Image: "registry.example.com:5000/cke:1.2.3"}},
		{
			Name: "setup-hw", Strategy: Any, After: []string{"cke"}, Services: []string{"setup-hw.service"},
			Artifact: &Artifact{Deb: &File{URL: "https://example.com/setup-hw.deb", SHA256: strings.Repeat("a", 64)}},
		},
		{
			Name: "etcd", Strategy: Rolling, Services: []string{"etcd.service"}, Soak: Duration(10 * time.Second),
			Artifact: &Artifact{Archive: &File{URL: "https://example.com/etcd.tgz", SHA256: strings.Repeat("b", 64), To: "/opt/etcd"}},
			Health:   &Health{Command: []string{"etcdctl", "endpoint", "health"}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	out, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadManifest("again.yaml", out)
	if again.Digest = got.Digest; err != nil || !cmp.Equal(got, again) {
		t.Errorf("written and read again: %s, %v", cmp.Diff(got, again), err)
	}
}

// TestDigest checks that a manifest's digest depends on its content and not on its formatting. It
// covers unknown fields, and leaves out the version, which is compared separately.
func TestDigest(t *testing.T) {
	digest := func(text string) string {
		t.Helper()
		d, err := PlanDigest([]byte(text))
		if err != nil || len(d) != 64 {
			t.Fatalf("%q: %q, %v", text, d, err)
		}
		return d
	}
	one := digest("version: 1.0-1\ncomponents:\n- name: a\n  strategy: any\n  soak: 10s\n")
	for _, same := range []string{
		"# a comment\ncomponents: [{strategy: any, soak: 10s, name: a}]\n", "version: 1.0-2\ncomponents:\n- {\"name\": \"a\", soak: '10s', strategy: any}\n",
	} {
		if digest(same) != one {
			t.Errorf("%q is another one", same)
		}
	}
	for _, other := range []string{
		"components:\n- {name: a, strategy: any, soak: 11s}\n", "components:\n- {name: a, strategy: any, soak: 10s, later: {one: x}}\n",
		"components:\n- {name: b, strategy: any}\n- {name: a, strategy: any, soak: 10s}\n", "{}",
	} {
		if digest(other) == one {
			t.Errorf("%q is the same", other)
		}
	}
	if _, err := PlanDigest([]byte("<html>")); err == nil {
		t.Error("a page has a digest")
	}
}

// TestArtifactsByArchitecture checks that an artifact can be a different file for each architecture,
// and that the digest covers all of them.
func TestArtifactsByArchitecture(t *testing.T) {
	text := func(more string) string {
		return "components:\n- {name: a, strategy: any, artifact: {archive: {to: /opt/a, by-arch: {amd64: {url: 'https://x/1', sha256: " +
			strings.Repeat("1", 64) + "}, arm64: {url: 'https://x/2', sha256: " + strings.Repeat("2", 64) + more + "}}}}}\n"
	}
	m, err := ReadManifest("manifest.yaml", []byte(text("")))
	if err != nil {
		t.Fatal(err)
	}
	for arch, url := range map[string]string{"amd64": "https://x/1", "arm64": "https://x/2"} {
		t.Run(arch, func(t *testing.T) {
			own, err := m.ForArch(arch)
			if err != nil {
				t.Fatal(err)
			}
			if f := own.Components[0].Artifact.Archive; f.URL != url || f.To != "/opt/a" || own.Digest != m.Digest {
				t.Errorf("%+v", f)
			}
		})
	}
	if _, err := m.ForArch("riscv64"); err == nil || !strings.Contains(err.Error(), "no artifact for riscv64") {
		t.Errorf("riscv64: %v", err)
	}
	for what, more := range map[string]string{"a folder": ", to: /opt/b", "no sum": "1"} {
		t.Run(what, func(t *testing.T) {
			if _, err := ReadManifest("manifest.yaml", []byte(text(more))); err == nil {
				t.Errorf("%s is taken", what)
			}
		})
	}
}

// TestManifestRefusals checks that each error names file and line.
func TestManifestRefusals(t *testing.T) {
	tests := []struct{ what, text, err string }{
		{"unknown strategy", "components:\n- name: a\n  strategy: sometimes", `m.yaml:3: component "a": there is no strategy "sometimes"; the strategies are [stop-all rolling any leader-once]`},
		{"no strategy", "components:\n- name: a", `m.yaml:2: component "a": there is no strategy ""`},
		{"missing sum", "components:\n- name: a\n  strategy: any\n  artifact:\n    deb: {url: 'https://x/y'}", `m.yaml:5: component "a": the SHA-256 sum of "https://x/y" is missing`},
		{"short sum", "components:\n- name: a\n  strategy: any\n  artifact:\n    deb: {url: 'https://x/y', sha256: abc}", "is not 64 hexadecimal digits"},
		{"missing sum of contents", "components:\n- name: a\n  strategy: leader-once\n  contents: {key: a, ignitions: [{role: r, id: i, file: {url: 'https://x/y'}}]}", `m.yaml:4: component "a": the SHA-256 sum of "https://x/y" is missing`},
		{"duplicate", "components:\n- {name: a, strategy: any}\n- {name: b, strategy: any}\n- name: a\n  strategy: any", `m.yaml:4: the name "a" is already used by the component at line 2`},
		{"cycle", "components:\n- {name: a, strategy: any, after: [b]}\n- name: b\n  strategy: any\n  after: [a]", "m.yaml:2: components wait for one another: a after b after a"},
		{"itself", "components:\n- {name: a, strategy: any, after: [a]}", "m.yaml:2: components wait for one another: a after a"},
		{"cycle behind another", "components:\n- {name: z, strategy: any, after: [a]}\n- {name: a, strategy: any, after: [b]}\n- {name: b, strategy: any, after: [a]}", "m.yaml:3: components wait for one another: a after b after a"},
		{"unknown other", "components:\n- name: a\n  strategy: any\n  after:\n  - b", `m.yaml:5: component "a" must come after "b", but there is no such component`},
		{"unknown field", "components:\n- name: a\n  stratgy: any", "m.yaml: yaml: unmarshal errors:\n  line 3: field stratgy not found"},
		{"bad name", "components:\n- name: A/b\n  strategy: any", `m.yaml:2: cannot name a component "A/b"`},
		{"no components", "components: []", "m.yaml:1: the manifest has no components"},
		{"bad version", "version: v1\ncomponents: [{name: a, strategy: any}]", `m.yaml:1: invalid version "v1"`},
		{"two documents", "components: [{name: a, strategy: any}]\n---\n{}", "m.yaml: the file contains more than one document"},
		{"nothing", "", "m.yaml: EOF"},
		{"no YAML", "<html>:\n\t404", "m.yaml: yaml: "},
		{"contents by architecture", "components:\n- name: a\n  strategy: leader-once\n  contents: {key: a, ignitions: [{role: r, id: i, file: {by-arch: {amd64: {url: 'https://x/y', sha256: " + strings.Repeat("a", 64) + "}}}}]}", "a file of contents cannot have by-arch"},
		{"contents elsewhere", "components:\n- name: a\n  strategy: any\n  contents: {key: a}", "contents are required for the strategy leader-once"},
		{"once without contents", "components: [{name: a, strategy: leader-once}]", "contents are required for the strategy leader-once"},
		{"one key for two", "components:\n- {name: a, strategy: leader-once, contents: {key: k}}\n- {name: b, strategy: leader-once, contents: {key: k}}", `m.yaml:3: component "b": the key "k" is already used by component "a"`},
		{"nothing to stop", "components: [{name: a, strategy: stop-all}]", "services are missing"},
		{"two artifacts", "components:\n- name: a\n  strategy: any\n  artifact: {image: 'x:1', deb: {url: 'https://x/y'}}", "m.yaml:4: component \"a\": an artifact must have exactly one of image, archive and deb, and has 2"},
		{"no tag", "components: [{name: a, strategy: any, artifact: {image: 'host:5000/x'}}]", `image "host:5000/x" must have a tag`},
		{"latest", "components: [{name: a, strategy: any, artifact: {image: 'x:latest'}}]", "must have a tag other than latest"},
		{"archive to nowhere", "components: [{name: a, strategy: any, artifact: {archive: {url: 'https://x/y'}}}]", "an archive needs a directory"},
		{"health of two kinds", "components: [{name: a, strategy: any, health: {http: 'http://x', command: [x]}}]", "a health check must have"},
		{"no time to be well", "components: [{name: a, strategy: any, healthy-within: 10ms}]", "healthy-within is less than a second"},
		{"negative soak", "components: [{name: a, strategy: rolling, soak: -1s}]", "the soak time is negative"},
		{"local file", "components: [{name: a, strategy: any, artifact: {deb: {url: 'file:///x'}}}]", "a URL must begin with"},
		{"after-start of nothing", "components: [{name: a, strategy: any, after-start: {each-line-of: /x}}]", "after-start must have a command"},
		{"keys somewhere", "components: [{name: a, strategy: any, after-start: {command: [x], each-line-of: keys}}]", "is not absolute"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			m, err := ReadManifest("m.yaml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, %v, want %q", m, err, tt.err)
			}
		})
	}
}

// TestStepsFollowComponents checks that the number of steps depends on the components. In the original neco,
// a new step changed the numbers of all steps except the last one.
func TestStepsFollowComponents(t *testing.T) {
	m, err := DefaultManifest()
	if err != nil {
		t.Fatal(err)
	}
	before := len(m.Steps())
	m.Components = slices.Insert(m.Components, 3, Component{Name: "new", Strategy: StopAll})
	steps := m.Steps()
	if len(steps) != before+2 || steps[len(steps)-1].Number != len(steps) || steps[len(steps)-1].Name != "etcdpasswd/update" {
		t.Errorf("%d steps, the last is %+v", len(steps), steps[len(steps)-1])
	}
}

func FuzzManifest(f *testing.F) {
	data, err := os.ReadFile("testdata/manifest.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(defaultManifest)
	f.Add([]byte("components:\n- &a {name: a, strategy: any, after: [b]}\n- *a\n"))
	f.Add([]byte("components: [{name: a, strategy: any, after: [a]}]"))
	located := regexp.MustCompile(`^m\.yaml(:[1-9][0-9]*)?: `)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ReadManifest("m.yaml", data)
		if err != nil {
			if !located.MatchString(err.Error()) {
				t.Errorf("the error does not say where: %v", err)
			}
			return
		}
		place := map[string]int{}
		for i, c := range m.Components {
			if _, twice := place[c.Name]; twice {
				t.Errorf("%q is there twice", c.Name)
			}
			place[c.Name] = i
		}
		for i, c := range m.Components {
			for _, a := range c.After {
				if j, ok := place[a]; !ok || j >= i {
					t.Errorf("%q comes after %q, but it does not", c.Name, a)
				}
			}
		}
		if len(m.Steps()) < len(m.Components) {
			t.Errorf("%d components have %d steps", len(m.Components), len(m.Steps()))
		}
	})
}

// TestPackagedManifestIsBounded reads a manifest that is too long, and whose beginning would be a complete
// manifest.
func TestPackagedManifestIsBounded(t *testing.T) {
	manifest := append(bytes.Repeat([]byte("#"), maxSmallSize), "\ncomponents: []\n"...)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, data := range map[string][]byte{"bijou": nil, ManifestFile: manifest} {
		t.Run(name, func(t *testing.T) {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := findPlan(&b); err == nil || !strings.Contains(err.Error(), "the file manifest.yaml has more than 1048576 bytes") {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
