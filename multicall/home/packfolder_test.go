package home

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFolders(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "u-0"), filepath.Join(t.TempDir(), "machines", "u-0")
	err := errors.Join(
		os.MkdirAll(filepath.Join(from, "charm", "closed"), 0o755),
		os.WriteFile(filepath.Join(from, "charm", "hook"), []byte("#!/bin/sh\n"), 0o755),
		os.WriteFile(filepath.Join(from, "charm", "closed", "x"), []byte("secret"), 0o600),
		os.Symlink("/etc", filepath.Join(from, "tools")),
		syscall.Mkfifo(filepath.Join(from, "fifo"), 0o600),
		os.Chmod(filepath.Join(from, "charm", "closed"), 0o500),
	)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if changed, err := PackFolder(&b, from); err != nil || len(changed) > 0 {
		t.Fatal(changed, err)
	}
	if err := UnpackFolder(&b, to); err != nil {
		t.Fatal(err)
	}
	hook, err := os.Stat(filepath.Join(to, "charm", "hook"))
	secret, rerr := os.ReadFile(filepath.Join(to, "charm", "closed", "x"))
	link, lerr := os.Readlink(filepath.Join(to, "tools"))
	if err := errors.Join(err, rerr, lerr); err != nil || hook.Mode().Perm() != 0o755 || string(secret) != "secret" || link != "/etc" {
		t.Errorf("%v, %v, %q, %q", err, hook.Mode(), secret, link)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(to), "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestFoldersStayInside unpacks archives that try to write outside the directory.
func TestFoldersStayInside(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"up":        {{Name: "../x", Typeflag: tar.TypeReg}},
		"absolute":  {{Name: "/x", Typeflag: tar.TypeReg}},
		"by a link": {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/x", Typeflag: tar.TypeReg}},
		"a device":  {{Name: "d", Typeflag: tar.TypeChar}},
	} {
		dir := t.TempDir()
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
		err := UnpackFolder(&b, filepath.Join(dir, "u-0"))
		if _, serr := os.Lstat(filepath.Join(dir, "u-0")); err == nil || serr == nil {
			t.Errorf("%s: %v, %v", name, err, serr)
		}
		if _, serr := os.Lstat(filepath.Join(dir, "x")); serr == nil {
			t.Errorf("%s: it was written", name)
		}
	}
}
