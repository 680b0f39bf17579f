package charm

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pack archives dir. It fails the test if it cannot.
func pack(t testing.TB, dir string, opts ArchiveOptions) ([]byte, ArchiveInfo) {
	t.Helper()
	var buf bytes.Buffer
	info, err := Archive(dir, &buf, opts)
	must(t, err)
	return buf.Bytes(), info
}

func TestArchiveAndUnpack(t *testing.T) {
	files := map[string]string{
		"config.yaml": "options: {}", "hooks/install": "#!/bin/sh\n", "hooks/start": "->install", "lib/": "",
		"lib/deep/er/file": "x", "bin/relation-get": "->/var/lib/tools/relation-get", `odd\x2d "name" ü`: "", "up": "->lib/../lib",
		".git/config": "", "sub/.bzr/x": "", "sub/keep": "", "save~": "", ".save.swp": "", "#save#": "", ".#save": "->me@host.1", "#": "kept",
	}
	dir := makeDir(t, files)
	must(t, os.Chmod(filepath.Join(dir, "config.yaml"), 0o600|os.ModeSetuid|os.ModeSticky))
	must(t, os.Chmod(filepath.Join(dir, "lib", "deep"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "lib", "deep"), 0o755) })
	data, info := pack(t, dir, ArchiveOptions{Tools: []string{"relation-get"}})

	to := filepath.Join(t.TempDir(), "charm")
	must(t, Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{SHA256: info.SHA256, Tools: []string{"relation-get"}, ToolsDir: "/tools"}))
	want := map[string]string{
		".": "drwxr-xr-x", "metadata.yaml": "-rw-r--r-- name: tiny\n", "revision": "-rw-r--r-- 0\n", "config.yaml": "utrw-r--r-- options: {}",
		"hooks": "drwxr-xr-x", "hooks/install": "-rwxr-xr-x #!/bin/sh\n", "hooks/start": "-> install",
		"lib": "drwxr-xr-x", "lib/deep": "drwxr-xr-x", "lib/deep/er": "drwxr-xr-x", "lib/deep/er/file": "-rw-r--r-- x",
		"bin": "drwxr-xr-x", "bin/relation-get": "-> /tools/relation-get", `odd\x2d "name" ü`: "-rw-r--r-- ", "up": "-> lib/../lib",
		"sub": "drwxr-xr-x", "sub/keep": "-rw-r--r-- ", "#": "-rw-r--r-- kept",
	}
	if diff := cmp.Diff(want, listing(t, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sum := sha256.Sum256(data)
	if wantInfo := (ArchiveInfo{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data)), Unpacked: 37, Files: 17}); info != wantInfo {
		t.Errorf("info %+v, want %+v", info, wantInfo)
	}
}

func TestArchiveIsTheSameForTheSameFiles(t *testing.T) {
	files := map[string]string{"hooks/install": "a", "hooks/start": "b", "x": "->hooks", "revision": " 7\n\n"}
	a, aInfo := pack(t, makeDir(t, files), ArchiveOptions{})
	other := makeDir(t, files)
	must(t, os.Chtimes(filepath.Join(other, "hooks", "start"), time.Unix(1, 0), time.Unix(2, 0)))
	must(t, os.WriteFile(filepath.Join(other, "revision"), []byte("7"), 0o600))
	b, bInfo := pack(t, other, ArchiveOptions{})
	if !bytes.Equal(a, b) || aInfo != bInfo {
		t.Error("equal charms have different archives")
	}
	c, _ := pack(t, other, ArchiveOptions{Revision: 8})
	if bytes.Equal(a, c) {
		t.Error("another revision has the same archive")
	}
	must(t, WriteRevision(other, 8))
	d, _ := pack(t, other, ArchiveOptions{})
	if !bytes.Equal(c, d) {
		t.Error("a revision in the directory and one in the options differ")
	}
	read, err := ReadArchive(bytes.NewReader(d), int64(len(d)))
	if err != nil || read.Revision != 8 {
		t.Errorf("revision %+v, %v", read, err)
	}
}

func TestArchiveRefuses(t *testing.T) {
	outside := "it points outside of the charm"
	for name, c := range map[string]struct {
		files     map[string]string
		spoil     func(t *testing.T, dir string)
		complaint string
	}{
		"link out":             {files: map[string]string{"x": "->../y"}, complaint: `link "x" to "../y": ` + outside},
		"absolute link":        {files: map[string]string{"x": "->/etc/passwd"}, complaint: outside},
		"link in by the back":  {files: map[string]string{"a/up": "->..", "x": "->a/up/../y"}, complaint: `link "x" to "a/up/../y": ` + outside},
		"link through another": {files: map[string]string{"a": "->b", "b": "->/"}, complaint: outside},
		"link of venv":         {files: map[string]string{"venv/bin/x": "->/usr/bin/python3"}, complaint: `link "venv/bin/x" to "/usr/bin/python3": ` + outside},
		"loop":                 {files: map[string]string{"a": "->b", "b": "->a"}, complaint: "part of a loop"},
		"other tool":           {files: map[string]string{"juju-run": "->/usr/bin/juju-run"}, complaint: outside},
		"into a tool":          {files: map[string]string{"relation-get": "->/x", "y": "->relation-get/z"}, complaint: `link "y"`},
		"no charm":             {spoil: func(t *testing.T, dir string) { must(t, os.Remove(dir+"/metadata.yaml")) }, complaint: "neither metadata.yaml nor charmcraft.yaml"},
		"bad revision":         {files: map[string]string{"revision": "x"}, complaint: `revision: "x" is not a number`},
		"folder as revision":   {files: map[string]string{"revision/x": ""}, complaint: `"revision" is a directory`},
		"backslash":            {files: map[string]string{`hooks\install`: ""}, complaint: `file "hooks\\install": its name has a backslash instead of a slash`},
		"rule of .jujuignore":  {files: map[string]string{".jujuignore": "x\n[a"}, complaint: `.jujuignore: line 2: pattern "[a": a [ has no ]`},
		"not UTF-8":            {files: map[string]string{"\xff": ""}, complaint: `file "\xff": its name is not UTF-8`},
		"pipe":                 {spoil: func(t *testing.T, dir string) { must(t, syscall.Mkfifo(dir+"/p", 0o644)) }, complaint: `file "p" cannot be in a charm: it is a named pipe`},
		"socket":               {spoil: makeSocket, complaint: `file "sub/s" cannot be in a charm: it is a socket`},
		"too big":              {files: map[string]string{"big": strings.Repeat("x", 2000)}, complaint: `file "big": files are too big: 1001 bytes or more together; the limit is 1000 bytes`},
		"too many":             {files: map[string]string{"1": "", "2": "", "3": "", "4": "", "5": ""}, complaint: "too many files: 6 or more; the limit is 5"},
		"too big packed":       {files: map[string]string{"big": noise(980)}, complaint: "archive is too big"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := makeDir(t, c.files)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			_, err := archive(dir, io.Discard, ArchiveOptions{Tools: []string{"relation-get"}}, limits{packed: 1000, unpacked: 1000, files: 5})
			if err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("got %v, want an error with %q", err, c.complaint)
			}
		})
	}
}

// TestArchiveLeavesOut packs an author's directory, a directory that was unpacked from an archive, and a
// directory in the form that older binaries without .jujuignore packed.
func TestArchiveLeavesOut(t *testing.T) {
	dir := makeDir(t, map[string]string{
		".jujuignore": "/venv\n/revision\nversion\n*.log\n!keep.log\nmetadata.yaml\n", "revision": "7", "version": "v7", "venv/lib.py": "", "venv/x.log": "",
		"venv/bin/python": "->python3", "venv/bin/python3": "->/usr/bin/python3", "venv/bin/python3.11": "->python3", "venv/bin/python-own": "->../lib.py",
		"a.log": "", "sub/b.log": "", "sub/keep.log": "", "sub/version": "", ".tox/python": "->/usr/bin/python3", "build/x": "", "sub/build/x": "", ".git/x": "", "save~": "",
		"hooks/install": "",
	})
	must(t, os.Chmod(filepath.Join(dir, "venv"), 0o700))
	must(t, os.Chmod(filepath.Join(dir, "venv", "lib.py"), 0o660))
	must(t, os.Chmod(filepath.Join(dir, "hooks", "install"), 0o700|os.ModeSetgid))

	kept := map[string]string{
		"metadata.yaml": "-rw-r--r--", "revision": "-rw-r--r--", "version": "-rw-r--r--", "venv": "drwxr-xr-x", "venv/lib.py": "-rw-r--r--",
		"venv/x.log": "-rw-r--r--", "venv/bin": "drwxr-xr-x", "venv/bin/python-own": "Lrwxrwxrwx", "sub": "drwxr-xr-x", "sub/keep.log": "-rw-r--r--", "sub/build": "drwxr-xr-x", "sub/build/x": "-rw-r--r--",
		"hooks": "drwxr-xr-x", "hooks/install": "grwxr-xr-x",
	}
	data, _ := pack(t, dir, ArchiveOptions{})
	if diff := cmp.Diff(kept, packedModes(t, data)); diff != "" {
		t.Errorf("an author's (-want +got):\n%s", diff)
	}

	must(t, os.RemoveAll(filepath.Join(dir, ".tox")))
	data, _ = pack(t, dir, ArchiveOptions{Unpacked: "app.charm"})
	all := packedModes(t, data)
	for name, mode := range map[string]string{".jujuignore": "-rw-r--r--", "a.log": "-rw-r--r--", ".git/x": "-rw-r--r--", "save~": "-rw-r--r--", "build/x": "-rw-r--r--", "venv": "drwx------", "venv/lib.py": "-rw-rw----", "hooks/install": "grwx------"} {
		if all[name] != mode {
			t.Errorf("unpacked: %s is %q, want %q", name, all[name], mode)
		}
	}

	data, _ = pack(t, dir, ArchiveOptions{Former: true})
	former := packedModes(t, data)
	for name, mode := range map[string]string{".jujuignore": "-rw-r--r--", "a.log": "-rw-r--r--", ".git/x": "", "save~": "", "build/x": "-rw-r--r--", "venv": "drwx------", "venv/lib.py": "-rw-rw----", "hooks/install": "-rwx------"} {
		if former[name] != mode {
			t.Errorf("formerly: %s was %q, want %q", name, former[name], mode)
		}
	}
}

// packedModes returns the permissions in the archive, by name.
func packedModes(t *testing.T, data []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	modes := map[string]string{}
	for _, f := range r.File {
		modes[strings.TrimSuffix(f.Name, "/")] = f.Mode().String()
	}
	return modes
}

func TestErrorsOfAnUnpackedCharmNameItsArchive(t *testing.T) {
	dir := makeDir(t, nil)
	must(t, syscall.Mkfifo(dir+"/p", 0o644))
	_, err := Archive(dir, io.Discard, ArchiveOptions{Unpacked: "app.charm"})
	if want := `cannot archive charm "app.charm": file "p" cannot be in a charm: it is a named pipe`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestArchiveOfPackedFilesDoesNotGrow(t *testing.T) {
	dir := makeDir(t, map[string]string{"packed": noise(2 << 20), "text": strings.Repeat("some text\n", 100_000)})
	var out bytes.Buffer
	_, err := archive(dir, &out, ArchiveOptions{}, limits{packed: 2<<20 + 10<<10, unpacked: 1 << 30, files: 10})
	must(t, err)
	to := filepath.Join(t.TempDir(), "charm")
	must(t, Unpack(bytes.NewReader(out.Bytes()), int64(out.Len()), to, UnpackOptions{}))
	for _, name := range []string{"packed", "text"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s became %d bytes, %v", name, len(got), err)
		}
	}
}

func makeSocket(t *testing.T, dir string) {
	must(t, os.Mkdir(dir+"/sub", 0o755))
	l, err := net.Listen("unix", dir+"/sub/s")
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

// noise returns a text that cannot be compressed.
func noise(n int) string {
	b := make([]byte, n)
	rand.New(rand.NewSource(1)).Read(b)
	return string(b)
}

func TestReadDirToleratesWhatHooksLeaveBehind(t *testing.T) {
	dir := makeDir(t, map[string]string{"hooks/install": ""})
	makeSocket(t, dir)
	must(t, syscall.Mkfifo(dir+"/hooks/start", 0o644))
	must(t, syscall.Mkfifo(dir+"/config.yaml", 0o644))
	c, err := ReadDir(dir)
	must(t, err)
	if !c.HasHook("install") || c.HasHook("start") || c.HasHook("stop") {
		t.Errorf("hooks: %q", c.Hooks())
	}
}
