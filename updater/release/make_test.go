package release_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/kit/need"
	"bijou/updater/record"
	"bijou/updater/release"
)

// elf returns the beginning of an ELF program for that machine.
func elf(machine byte) string {
	return "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 11) + string([]byte{machine, 0})
}

// workshop returns a directory with a plan, and programs of two architectures.
func workshop(t *testing.T, plan string) (dir string, r release.Recipe) {
	t.Helper()
	dir = t.TempDir()
	put(t, filepath.Join(dir, "plan.yaml"), plan)
	put(t, filepath.Join(dir, "parts", "a.deb"), "a package")
	put(t, filepath.Join(dir, "bijou-amd64"), elf(0x3e)+"one")
	put(t, filepath.Join(dir, "bijou-arm64"), elf(0xb7)+"other")
	return dir, release.Recipe{
		Manifest: filepath.Join(dir, "plan.yaml"), Version: "1.0-1", TagPrefix: "release", Running: "1.0-1", Dir: filepath.Join(dir, "out"),
		Programs: []string{filepath.Join(dir, "bijou-amd64"), filepath.Join(dir, "bijou-arm64")},
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
}

const withPart = "components:\n- {name: a, strategy: any, artifact: {deb: {file: parts/a.deb}}}\n"

func TestMake(t *testing.T) {
	dir, r := workshop(t, withPart)
	made, err := r.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"SHA256SUMS", "a.deb", "bijou_1.0-1_linux_amd64.tar.gz", "bijou_1.0-1_linux_arm64.tar.gz", "manifest.yaml"}
	if diff := cmp.Diff(want, made.Files); diff != "" || made.Tag != "release-1.0-1" || made.Existed {
		t.Error(diff, made)
	}

	// If the release is built on a different day, it must have the same bytes.
	before := digest(t, made.Dir)
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, digest(t, made.Dir)); diff != "" {
		t.Error(diff)
	}

	r.Version, r.PreRelease = "1.0-2", true
	if _, err := r.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	tags, err := release.WriteIndex(r.Dir)
	if diff := cmp.Diff([]string{"release-1.0-2", "release-1.0-1"}, tags); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for env, want := range map[string]string{record.EnvProduction: "1.0-1", record.EnvStaging: "1.0-2"} {
		t.Run(env, func(t *testing.T) {
			source, err := release.NewSource(record.Config{Env: env, ReleaseFolder: r.Dir})
			if err != nil {
				t.Fatal(err)
			}
			all, err := source.Releases(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if best, ok := release.Choose(env, "", all); !ok || best.Version.String() != want {
				t.Errorf("%s takes %+v", env, best)
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, release.SumsFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMakeRefuses checks that a refused recipe leaves no files behind.
func TestMakeRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		plan   string
		change func(dir string, r *release.Recipe)
		want   string
	}{
		"two files of one name": {plan: withPart + "- {name: b, strategy: any, artifact: {deb: {file: other/a.deb}}}\n", change: func(dir string, _ *release.Recipe) { put(t, filepath.Join(dir, "other", "a.deb"), "another") }, want: "would have the same name in the release"},
		"a file of a package's name": {plan: strings.Replace(withPart, "a.deb", "bijou_1.0-1_linux_amd64.tar.gz", 1), change: func(dir string, _ *release.Recipe) {
			put(t, filepath.Join(dir, "parts", "bijou_1.0-1_linux_amd64.tar.gz"), "x")
		}, want: "would have the same name as a package"},
		"a file that is called like sums": {plan: strings.Replace(withPart, "a.deb", "SHA256SUMS", 1), change: func(dir string, _ *release.Recipe) { put(t, filepath.Join(dir, "parts", "SHA256SUMS"), "x") }, want: `cannot use "SHA256SUMS" as the name`},
		"a file and a URL":                {plan: strings.Replace(withPart, "{file:", "{url: \"https://example.com/\", file:", 1), want: "cannot use both url"},
		"one architecture is missing":     {plan: strings.Replace(withPart, "{file: parts/a.deb}", "{by-arch: {amd64: {file: parts/a.deb}}}", 1), want: "there is no artifact for arm64"},
		"two programs of one":             {plan: withPart, change: func(_ string, r *release.Recipe) { r.Programs[1] = r.Programs[0] }, want: "two programs are for amd64"},
		"a script for a program":          {plan: withPart, change: func(dir string, r *release.Recipe) { put(t, r.Programs[1], "#!/bin/sh\necho no\n") }, want: "is not a program for Linux"},
		"another version than it says":    {plan: "version: \"2.0\"\n" + withPart, want: "the plan has version 2.0, not 1.0-1"},
		"called off":                      {plan: withPart, want: "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, r := workshop(t, tt.plan)
			if tt.change != nil {
				tt.change(dir, &r)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "called off" {
				cancel()
			}
			_, err := r.Make(ctx)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
			if left, _ := os.ReadDir(r.Dir); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}

// TestMakeOther checks that a new release does not change the existing one, and that the remains of an
// interrupted call are removed.
func TestMakeOther(t *testing.T) {
	dir, r := workshop(t, withPart)
	put(t, filepath.Join(r.Dir, ".draft", "release-1.0-1", "half"), "x")
	made, err := r.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := digest(t, made.Dir)

	// The next call completes a call that was killed after it had written the release and before it wrote the
	// index.
	if err := os.Remove(filepath.Join(r.Dir, release.IndexFile)); err != nil {
		t.Fatal(err)
	}
	made, err = r.Make(t.Context())
	if _, missing := os.Stat(filepath.Join(r.Dir, release.IndexFile)); err != nil || !made.Existed || missing != nil {
		t.Error(made, err, missing)
	}

	put(t, filepath.Join(dir, "parts", "a.deb"), "another package")
	if _, err := r.Make(t.Context()); !errors.Is(err, release.ErrOther) || digest(t, made.Dir) != before {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, ".draft")); err == nil {
		t.Error("a draft stays")
	}
}

// TestMakeDeb builds neco's package with a different plan and version.
func TestMakeDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		need.Skip(t, "dpkg-deb", "dpkg-deb is not installed: no package is made")
	}
	dir, r := workshop(t, withPart)
	root := filepath.Join(dir, "neco")
	put(t, filepath.Join(root, "usr", "lib", "bijou", "bijou"), elf(0x3e))
	put(t, filepath.Join(root, "usr", "lib", "bijou", "manifest.yaml"), "version: 0.9\ncomponents:\n- {name: old, strategy: any}\n")
	put(t, filepath.Join(root, "DEBIAN", "control"), "Package: neco\nVersion: 0.9\nArchitecture: amd64\nMaintainer: us <us@example.com>\nDescription: x\n")
	deb := filepath.Join(dir, "neco.deb")
	if out, err := exec.Command("dpkg-deb", "--build", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	r.Packages = []string{deb}
	made, err := r.Make(t.Context())
	if err != nil || !slices.Contains(made.Files, "neco_1.0-1_amd64.deb") {
		t.Fatal(made, err)
	}
	fields, err := exec.Command("dpkg-deb", "--field", filepath.Join(made.Dir, "neco_1.0-1_amd64.deb"), "Version", "Architecture").Output()
	if err != nil || string(fields) != "Version: 1.0-1\nArchitecture: amd64\n" {
		t.Errorf("%q, %v", fields, err)
	}

	put(t, filepath.Join(root, "DEBIAN", "control"), "Package: other\nVersion: 0.9\nArchitecture: amd64\nMaintainer: us <us@example.com>\nDescription: x\n")
	if out, err := exec.Command("dpkg-deb", "--build", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.Version = "1.0-2"
	if _, err := r.Make(t.Context()); err == nil || !strings.Contains(err.Error(), `the file is a package of "other", not of neco`) {
		t.Error(err)
	}
}
