package charm

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnpackRefuses(t *testing.T) {
	link := fs.ModeSymlink | 0o777
	for name, c := range map[string]struct {
		files     []zipped
		complaint string
	}{
		"dot dot":               {[]zipped{{name: "../x"}}, `file "../x": its name leads outside of the charm`},
		"dot dot inside":        {[]zipped{{name: "a/../../x"}}, "its name leads outside of the charm"},
		"dot dot that stays":    {[]zipped{{name: "a/../x"}}, "its name leads outside of the charm"},
		"absolute":              {[]zipped{{name: "/etc/x"}}, "its name is absolute"},
		"empty":                 {[]zipped{{name: ""}}, "its name is empty or has empty parts"},
		"dot":                   {[]zipped{{name: "./", mode: fs.ModeDir | 0o755}}, "its name is empty or has empty parts"},
		"empty part":            {[]zipped{{name: "a//b"}}, "its name is empty or has empty parts"},
		"NUL":                   {[]zipped{{name: "a\x00b"}}, "NUL byte"},
		"not UTF-8":             {[]zipped{{name: "a\xff"}}, "not UTF-8"},
		"long name":             {[]zipped{{name: strings.Repeat("a/", 3000) + "a"}}, "its name has 6001 bytes; the limit is 4095"},
		"long part":             {[]zipped{{name: "d/" + strings.Repeat("x", 256)}}, "a part of its name has 256 bytes; the limit is 255"},
		"twice":                 {[]zipped{{name: "a"}, {name: "a"}}, `file "a" appears twice in the archive`},
		"file and folder":       {[]zipped{{name: "a"}, {name: "a/", mode: fs.ModeDir | 0o755}}, "twice"},
		"metadata twice":        {[]zipped{{name: "metadata.yaml"}}, "twice"},
		"file in a file":        {[]zipped{{name: "a/b"}, {name: "a"}}, `file "a/b" lies in "a", which is not a directory`},
		"file through a link":   {[]zipped{{name: "a", mode: link, content: "/tmp"}, {name: "a/b"}}, `lies in "a", which is not a directory`},
		"link out":              {[]zipped{{name: "a", mode: link, content: "../../x"}}, `link "a" to "../../x": it points outside of the charm`},
		"absolute link":         {[]zipped{{name: "a", mode: link, content: "/etc/passwd"}}, "it points outside of the charm"},
		"link out through link": {[]zipped{{name: "d/up", mode: link, content: ".."}, {name: "a", mode: link, content: "d/up/../x"}}, `link "a" to "d/up/../x": it points outside`},
		"loop":                  {[]zipped{{name: "a", mode: link, content: "./a"}}, "part of a loop"},
		"empty link":            {[]zipped{{name: "a", mode: link}}, "its target is not a path"},
		"long link":             {[]zipped{{name: "a", mode: link, content: strings.Repeat("x", 5000)}}, "its target has 5000 bytes"},
		"growing link":          {[]zipped{{name: "a", mode: link, content: strings.Repeat("x/", 2000) + "x"}, {name: "b", mode: link, content: strings.Repeat("y/", 100) + "../a"}}, ""},
		"device":                {[]zipped{{name: "a", mode: fs.ModeDevice | 0o644}}, "neither a file, a directory nor a symlink: a device"},
		"pipe":                  {[]zipped{{name: "a", mode: fs.ModeNamedPipe | 0o644}}, "a named pipe"},
		"socket":                {[]zipped{{name: "a", mode: fs.ModeSocket | 0o644}}, "a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tryUnpack(t, makeZip(t, c.files...), defaultLimits())
			if c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) {
				t.Errorf("got %v, want an error with %q", err, c.complaint)
			}
		})
	}
}

// TestManyLongLinks checks that the targets of symlinks cannot fill the memory.
func TestManyLongLinks(t *testing.T) {
	files := make([]zipped, 4100)
	for i := range files {
		files[i] = zipped{name: fmt.Sprintf("l%d", i), mode: fs.ModeSymlink | 0o777, content: strings.Repeat("x", maxPath)}
	}
	err := tryUnpack(t, makeZip(t, files...), defaultLimits())
	if err == nil || !strings.Contains(err.Error(), "the targets of links are too big: 16781312 bytes or more together, at most 16 MiB") {
		t.Errorf("got %v", err)
	}
}

// TestReadPackedFile checks that a file of a bundle's archive is read with the limits of a charm's archive.
func TestReadPackedFile(t *testing.T) {
	for name, c := range map[string]struct {
		files     []zipped
		complaint string
	}{
		"there":      {[]zipped{{name: "bundle.yaml", content: "a: b"}}, ""},
		"missing":    {nil, "does not exist"},
		"too large":  {[]zipped{{name: "bundle.yaml", content: strings.Repeat("x", MaxYAML+1)}}, "too big"},
		"long names": {[]zipped{{name: "bundle.yaml", content: "a: b"}, {name: strings.Repeat("a/", 30_000) + "a"}}, "its name has 60001 bytes"},
		"a link out": {[]zipped{{name: "bundle.yaml", mode: fs.ModeSymlink | 0o777, content: "../x"}}, "outside of the charm"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bundle.zip")
			if err := os.WriteFile(path, makeZip(t, c.files...), 0o600); err != nil {
				t.Fatal(err)
			}
			data, err := ReadPackedFile(path, "bundle.yaml")
			if c.complaint == "" && (err != nil || string(data) != "a: b") {
				t.Errorf("%q, %v", data, err)
			}
			if c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) {
				t.Errorf("got %v, want an error with %q", err, c.complaint)
			}
		})
	}
}

// tryUnpack unpacks an archive. After a failure no file may remain, and no file may ever be created outside
// the directory.
func tryUnpack(t *testing.T, data []byte, l limits) error {
	t.Helper()
	dir := t.TempDir()
	to := filepath.Join(dir, "deep", "charm")
	must(t, os.Mkdir(filepath.Dir(to), 0o755))
	err := unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{Tools: []string{"relation-get"}, ToolsDir: "/tools"}, l)
	if err == nil {
		must(t, os.RemoveAll(to))
	}
	if diff := cmp.Diff(map[string]string{".": "drwxr-xr-x", "deep": "drwxr-xr-x"}, listing(t, dir)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
	return err
}

func TestUnpackTakesWhatLinuxTakes(t *testing.T) {
	must(t, tryUnpack(t, makeZip(t, zipped{name: strings.Repeat("x", 255)}, zipped{name: "a\\..\\b\nc"}, zipped{name: "A"}, zipped{name: "a"}), defaultLimits()))
}

func TestUnpackOfManyFiles(t *testing.T) {
	files := make([]zipped, maxSyncedFiles+1)
	for i := range files {
		files[i] = zipped{name: fmt.Sprintf("d/%d", i), content: "x"}
	}
	data := makeZip(t, files...)
	for _, scratch := range []bool{false, true} {
		to := filepath.Join(t.TempDir(), "charm")
		must(t, Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{Scratch: scratch}))
		// The three others are the metadata, "d" and the directory itself.
		if n := len(listing(t, to)); n != len(files)+3 {
			t.Errorf("scratch %t: %d files", scratch, n)
		}
	}
}

func TestUnpackHoldsItsLimits(t *testing.T) {
	big := makeZip(t, zipped{name: "big", content: strings.Repeat("x", 5000)})
	liar := bytes.Clone(big)
	understate(t, liar, 5000, 10)
	small := limits{packed: 1 << 20, unpacked: 1000, files: 10}
	for name, c := range map[string]struct {
		data      []byte
		limits    limits
		complaint string
	}{
		"bomb":        {big, small, "files are too big: 1012 bytes or more together; the limit is 1000 bytes"},
		"lying bomb":  {liar, small, "not a valid zip file"},
		"packed":      {big, limits{packed: 100, unpacked: 1 << 20, files: 10}, fmt.Sprintf("archive is too big: %d bytes or more; the limit is 100 bytes", len(big))},
		"files":       {makeZip(t, zipped{name: "a"}, zipped{name: "b"}), limits{packed: 1 << 20, unpacked: 1 << 20, files: 2}, "too many files: 3 or more; the limit is 2"},
		"folders":     {makeZip(t, zipped{name: "a/b/c/d/e"}), limits{packed: 1 << 20, unpacked: 1 << 20, files: 5}, "too many files: 6 or more; the limit is 5"},
		"no zip":      {[]byte("hello"), small, "not a valid zip file"},
		"nothing":     {nil, small, "not a valid zip file"},
		"cut short":   {big[:len(big)-30], small, "not a valid zip file"},
		"broken file": {broken(t), defaultLimits(), "checksum error"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tryUnpack(t, c.data, c.limits); err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("got %v, want an error with %q", err, c.complaint)
			}
		})
	}
}

// understate replaces a size in the archive's central directory with a smaller one.
func understate(t *testing.T, data []byte, from, to uint32) {
	t.Helper()
	was, is := binary.LittleEndian.AppendUint32(nil, from), binary.LittleEndian.AppendUint32(nil, to)
	at := bytes.LastIndex(data, was)
	if at < 0 {
		t.Fatal("size not found")
	}
	copy(data[at:], is)
}

// broken returns an archive whose last file has a different checksum from the central directory's.
func broken(t *testing.T) []byte {
	t.Helper()
	data := makeZip(t, zipped{name: "file", content: "x"})
	header := bytes.LastIndex(data, []byte("PK\x01\x02"))
	data[header+16] ^= 0xff // the position of the checksum
	return data
}

func TestUnpackCountsWhatItWrites(t *testing.T) {
	// The central directory of this archive is correct, but the limit also applies to the files while they
	// are written.
	data := makeZip(t, zipped{name: "a", content: strings.Repeat("x", 600)}, zipped{name: "b", content: strings.Repeat("x", 600)})
	tr, res, err := checkArchive(bytes.NewReader(data), int64(len(data)), nil, defaultLimits())
	must(t, err)
	tr.limits.unpacked = 1000
	dir := t.TempDir()
	if err := unpackInto(dir, tr, res, UnpackOptions{}); err == nil || !strings.Contains(err.Error(), `file "b": files are too big: 1001 bytes or more`) {
		t.Errorf("got %v", err)
	}
}

func TestUnpackOneFileTooMany(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes as many files as a charm may have; the race detector finds nothing in it")
	}
	files := make([]zipped, MaxFiles)
	for i := range files {
		files[i].name = fmt.Sprintf("f%d", i)
	}
	data := makeZip(t, files...)
	if err := tryUnpack(t, data, defaultLimits()); err == nil || !strings.Contains(err.Error(), "too many files: 100001 or more; the limit is 100000") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadArchive(bytes.NewReader(data), int64(len(data))); err == nil {
		t.Error("ReadArchive took it")
	}
	if err := CheckArchive(bytes.NewReader(data), int64(len(data)), nil); err == nil {
		t.Error("CheckArchive took it")
	}
}

func TestListOfFilesTooBig(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := range 600 {
		// A comment is stored only in the central directory.
		_, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Comment: strings.Repeat("x", 60_000)})
		must(t, err)
	}
	must(t, w.Close())
	if err := tryUnpack(t, buf.Bytes(), defaultLimits()); err == nil || !strings.Contains(err.Error(), "the list of files is too big: more than 32 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestLinksThatTakeLongAreCutOff(t *testing.T) {
	files := make([]zipped, 3000)
	for i := range files {
		files[i] = zipped{name: fmt.Sprintf("l%d", i), mode: fs.ModeSymlink | 0o777, content: strings.Repeat("d/../", 800) + "x"}
	}
	if err := tryUnpack(t, makeZip(t, files...), defaultLimits()); err == nil || !strings.Contains(err.Error(), "too many levels of symlinks") {
		t.Errorf("got %v", err)
	}
}

func TestUnpackKeepsPermissions(t *testing.T) {
	data := makeZip(t,
		zipped{name: "su", mode: 0o755 | fs.ModeSetuid}, zipped{name: "sg", mode: 0o750 | fs.ModeSetgid},
		zipped{name: "st/", mode: fs.ModeDir | fs.ModeSticky | fs.ModeSetgid | 0o770}, zipped{name: "no/", mode: fs.ModeDir | 0o055},
		zipped{name: "no/f", mode: 0o444, content: "x"})
	to := filepath.Join(t.TempDir(), "charm")
	must(t, Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{}))
	want := map[string]string{
		".": "drwxr-xr-x", "metadata.yaml": "-rw-r--r-- " + tiny, "su": "urwxr-xr-x ", "sg": "grwxr-x--- ",
		"st": "dgtrwxrwx---", "no": "drwxr-xr-x", "no/f": "-r--r--r-- x",
	}
	if diff := cmp.Diff(want, listing(t, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnpackMends checks archives without permissions, archives with backslashes in names, and programs that
// have lost their executable bit.
func TestUnpackMends(t *testing.T) {
	link := fs.ModeSymlink | 0o777
	tests := []struct {
		name  string
		raw   bool // the archive claims to be from Unix, and has no permissions
		dos   bool // the archive claims to be from DOS
		files []zipped
		want  map[string]string // in addition to metadata.yaml
	}{
		{name: "mode 0", raw: true, files: []zipped{{name: "lib/"}, {name: "lib/x"}, {name: "hooks/install"}},
			want: map[string]string{"lib": "drwxr-xr-x", "lib/x": "-rw-r--r-- ", "hooks": "drwxr-xr-x", "hooks/install": "-rwxr-xr-x "}},
		{name: "backslashes of DOS", dos: true, files: []zipped{{name: `lib\`}, {name: `lib\x`}, {name: `hooks\install`}},
			want: map[string]string{"lib": "drwxr-xr-x", "lib/x": "-rw-r--r-- ", "hooks": "drwxr-xr-x", "hooks/install": "-rwxr-xr-x "}},
		{name: "backslashes of Unix", files: []zipped{{name: `lib\x`}, {name: `hooks\install`}},
			want: map[string]string{"lib": "drwxr-xr-x", "lib/x": "-rw-r--r-- ", "hooks": "drwxr-xr-x", "hooks/install": "-rwxr-xr-x "}},
		{name: "a backslash in a name", files: []zipped{{name: `files/a\x2db.mount`}},
			want: map[string]string{"files": "drwxr-xr-x", `files/a\x2db.mount`: "-rw-r--r-- "}},
		{name: "the program of a charm of today", files: []zipped{{name: "src/charm.py"}, {name: "src/other.py"}},
			want: map[string]string{"src": "drwxr-xr-x", "src/charm.py": "-rwxr-xr-x ", "src/other.py": "-rw-r--r-- "}},
		{name: "what a hook leads to", files: []zipped{{name: "hooks/install", mode: link, content: "../lib/all"}, {name: "lib/all"}, {name: "lib/rest"}},
			want: map[string]string{"hooks": "drwxr-xr-x", "hooks/install": "-> ../lib/all", "lib": "drwxr-xr-x", "lib/all": "-rwxr-xr-x ", "lib/rest": "-rw-r--r-- "}},
		{name: "a folder that is a link", files: []zipped{{name: "hooks", mode: link, content: "src/hooks"}, {name: "src/hooks/install"}},
			want: map[string]string{"hooks": "-> src/hooks", "src": "drwxr-xr-x", "src/hooks": "drwxr-xr-x", "src/hooks/install": "-rwxr-xr-x "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := makeZip(t, tt.files...)
			if tt.raw || tt.dos {
				data = makeBareZip(t, tt.dos, tt.files...)
			}
			to := filepath.Join(t.TempDir(), "charm")
			must(t, Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{}))
			got := listing(t, to)
			delete(got, ".")
			delete(got, "metadata.yaml")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// makeBareZip makes an archive without permissions.
func makeBareZip(t *testing.T, dos bool, files ...zipped) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range append([]zipped{{name: "metadata.yaml", content: tiny}}, files...) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, CreatorVersion: 3 << 8}
		if dos {
			h.CreatorVersion = 0
		}
		out, err := w.CreateHeader(h)
		must(t, err)
		if !strings.HasSuffix(f.name, "/") {
			_, err = out.Write([]byte(f.content))
			must(t, err)
		}
	}
	must(t, w.Close())
	return buf.Bytes()
}

func TestUnpackVerifiesFirst(t *testing.T) {
	data := makeZip(t)
	to := filepath.Join(t.TempDir(), "charm")
	err := Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{SHA256: strings.Repeat("0", 64)})
	if !errors.Is(err, ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
	if _, err := os.Lstat(to); !os.IsNotExist(err) {
		t.Errorf("something was unpacked: %v", err)
	}
}

func TestUnpackTakesNoFolderThatIsThere(t *testing.T) {
	data, to := makeZip(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(to, "mine"), nil, 0o644))
	if err := Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	if _, err := os.Stat(filepath.Join(to, "mine")); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}
