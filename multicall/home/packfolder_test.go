package home

import (
	"archive/tar"
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// TestFoldersKeepModes restores a directory, and checks the modes of the directory and of those in it, whatever
// the umask. As root it also checks their owners.
func TestFoldersKeepModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	from, to := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "data")
	modes := map[string]os.FileMode{".": 0o711, "open": 0o777 | os.ModeSticky, "group": 0o770 | os.ModeSetgid, "closed": 0o555, "closed/inner": 0o500}
	names := slices.Sorted(maps.Keys(modes))
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(from, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Backward(names) {
		dir := filepath.Join(from, name)
		err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
		if os.Geteuid() == 0 {
			err = errors.Join(err, os.Chown(dir, 65534, 65534))
		}
		if err := errors.Join(err, os.Chmod(dir, modes[name])); err != nil {
			t.Fatal(err)
		}
	}

	var b bytes.Buffer
	if changed, err := PackFolder(&b, from); err != nil || len(changed) > 0 {
		t.Fatal(changed, err)
	}
	if err := UnpackFolder(&b, to); err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			info, err := os.Stat(filepath.Join(to, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode() &^ os.ModeDir; got != modes[name] {
				t.Errorf("mode %v, want %v", got, modes[name])
			}
			stat, _ := info.Sys().(*syscall.Stat_t)
			if os.Geteuid() == 0 && (stat.Uid != 65534 || stat.Gid != 65534) {
				t.Errorf("owner %d:%d, want 65534:65534", stat.Uid, stat.Gid)
			}
		})
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
