package bootworld

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"bijou/testscripts/fakes/github"
)

// Installable returns the files of a release of this program with a manifest, and some files for other
// platforms. A manifest without a version gets the tag's. The package is not compressed, since it is never
// sent over a slow network.
func Installable(tag, manifest, word string) (map[string][]byte, error) {
	_, version, _ := strings.Cut(tag, "-")
	if !strings.HasPrefix(manifest, "version:") && word != "no-version" {
		manifest = "version: " + version + "\n" + manifest
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	if word == "dies" {
		binary = []byte("#!/bin/sh\ncase $1 in plan|--help) ;; *) exit 7 ;; esac\n")
	}
	packed, err := pack(map[string][]byte{"bijou": binary, "manifest.yaml": []byte(manifest)})
	if err != nil {
		return nil, err
	}
	name := func(form, arch string) string { return fmt.Sprintf(form, version, arch) }
	files := map[string][]byte{
		name("bijou_%s_linux_%s.tar.gz", runtime.GOARCH): packed,
		name("bijou_%s_linux_%s.tar.gz", "riscv64"):      []byte("for another machine"),
		name("neco_%s_%s.deb", runtime.GOARCH):           []byte("for another way to install it"),
		"notes.txt":                                      []byte("none\n"),
		"manifest.yaml":                                  []byte("# the release's\n" + manifest),
	}
	switch word {
	case "bare":
		delete(files, "manifest.yaml")
	case "other-plan":
		files["manifest.yaml"] = []byte("components:\n- {name: other, strategy: any, services: [other.service]}\n")
	case "wrong-sums":
		files["SHA256SUMS"] = wrongSums(files)
	}
	return files, nil
}

// planless returns the package of a release without a plan, and its name. Servers that have the version
// already need not install it.
func planless(tag string) (name string, packed []byte, err error) {
	_, version, _ := strings.Cut(tag, "-")
	packed, err = pack(map[string][]byte{"bijou": []byte("a program\n")})
	return fmt.Sprintf("bijou_%s_linux_%s.tar.gz", version, runtime.GOARCH), packed, err
}

func pack(files map[string][]byte) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for name, data := range files {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return nil, err
		}
		if _, err := t.Write(data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// wrongSums returns the sums of different packages with those names.
func wrongSums(files map[string][]byte) []byte {
	others := map[string][]byte{}
	for name := range files {
		others[name] = []byte("another file")
	}
	others["manifest.yaml"] = files["manifest.yaml"]
	return github.Sums(others)
}
