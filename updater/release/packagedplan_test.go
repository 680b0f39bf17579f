package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bijou/testscripts/fakes/github"
	"bijou/updater/record"
	"bijou/updater/release"
)

// packageSource returns a server of releases that are packages, and a source that reads it.
func packageSource(t *testing.T) (*github.Server, *release.Source) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not here: no package can be made")
	}
	server := github.New()
	t.Cleanup(server.Close)
	source, err := release.NewSource(record.Config{Env: record.EnvProduction, GitHubRepository: github.Repository, GitHubURL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	return server, source
}

// TestManifestOfAPackage checks that the plan is found in a release that consists only of a package, for each
// compression of packages.
func TestManifestOfAPackage(t *testing.T) {
	server, source := packageSource(t)
	for _, tt := range []struct {
		version, packing string
		sums             string // "" means correct sums
		want             string
	}{
		{"1.0-1", "gzip", "", ""}, {"1.0-2", "xz", "", ""}, {"1.0-3", "zstd", "", ""}, {"1.0-4", "none", "", ""},
		{"1.0-5", "gzip", strings.Repeat("0", 64) + "  neco_1.0-5_" + runtime.GOARCH + ".deb\n", "cannot be fetched"},
	} {
		t.Run(tt.version, func(t *testing.T) {
			name := "neco_" + tt.version + "_" + runtime.GOARCH + ".deb"
			files := map[string][]byte{name: deb(t, tt.packing)}
			if tt.sums != "" {
				files[release.SumsFile] = []byte(tt.sums)
			}
			server.Publish(github.Release{Tag: "release-" + tt.version, Files: files})
			m, err := source.Manifest(t.Context(), tt.version, t.TempDir())
			switch {
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: %v; want %q", tt.packing, err, tt.want)
			case tt.want == "" && (err != nil || len(m.Components) != 1 || m.Components[0].Name != "only"):
				t.Errorf("%s: %v, %v", tt.packing, m.Components, err)
			}
		})
	}
}

// TestPlansOfAllPackages checks that the maker of a release gets an error if a package has a different plan
// from the release.
func TestPlansOfAllPackages(t *testing.T) {
	server, source := packageSource(t)
	plan := []byte("version: 1.0-1\ncomponents:\n- {name: only, strategy: any, services: [only.service]}\n")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for name, data := range map[string][]byte{"bijou": {}, "manifest.yaml": append(plan, "- {name: more, strategy: any}\n"...)} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}), func() error { _, err := w.Write(data); return err }()); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"manifest.yaml": plan, "neco_1.0-1_amd64.deb": deb(t, "gzip"), "bijou_1.0-1_linux_riscv64.tar.gz": packed.Bytes(), "notes.txt": nil,
	}
	server.Publish(github.Release{Tag: "release-1.0-1", Files: files})
	all, err := source.Plans(t.Context(), "1.0-1", t.TempDir())
	digests := map[string]string{}
	for _, p := range all {
		digests[p.File] = p.Digest
	}
	if err != nil || len(all) != 3 || digests["manifest.yaml"] != digests["neco_1.0-1_amd64.deb"] || digests["manifest.yaml"] == digests["bijou_1.0-1_linux_riscv64.tar.gz"] {
		t.Errorf("%+v, %v", all, err)
	}
}

// deb returns a package with a program, its manifest, and a manifest of another program.
func deb(t *testing.T, packing string) []byte {
	t.Helper()
	dir := t.TempDir()
	tree, file := filepath.Join(dir, "tree"), filepath.Join(dir, "deb")
	for name, text := range map[string]string{
		"DEBIAN/control":            "Package: neco\nVersion: 1\nArchitecture: all\nMaintainer: bijou <root@localhost>\nDescription: a test\n",
		"opt/neco/bijou":            "#!/bin/sh\n",
		"opt/neco/manifest.yaml":    "components:\n- {name: only, strategy: any, services: [only.service]}\n",
		"usr/share/x/manifest.yaml": "components: of something else\n",
	} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-Z"+packing, "-b", tree, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
