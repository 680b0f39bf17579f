package charm

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// zipped is a file in a generated archive, which may be invalid in ways that archivers avoid.
type zipped struct {
	name    string
	mode    fs.FileMode // 0 means 0644
	content string
}

const tiny = "name: tiny\n"

// makeZip creates an archive, and adds metadata unless the files contain metadata.
func makeZip(t testing.TB, files ...zipped) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range append([]zipped{{name: "metadata.yaml", content: tiny}}, files...) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.mode == 0 {
			f.mode = 0o644
		}
		h.SetMode(f.mode)
		out, err := w.CreateHeader(h)
		must(t, err)
		if f.mode.IsDir() {
			continue
		}
		_, err = out.Write([]byte(f.content))
		must(t, err)
	}
	must(t, w.Close())
	return buf.Bytes()
}

// makeDir creates a charm's directory from contents by name. A name that ends in "/" is a directory, and a
// content that begins with "->" is a symlink. Files in hooks/ are executable.
func makeDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if _, ok := files["metadata.yaml"]; !ok {
		must(t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(tiny), 0o644))
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case name[len(name)-1] == '/':
			must(t, os.MkdirAll(path, 0o755))
		case len(content) > 2 && content[:2] == "->":
			must(t, os.Symlink(content[2:], path))
		case filepath.Base(filepath.Dir(path)) == "hooks":
			must(t, os.WriteFile(path, []byte(content), 0o755))
		default:
			must(t, os.WriteFile(path, []byte(content), 0o644))
		}
	}
	return dir
}

// listing describes a directory: type, permissions, and content or target.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		name, err := filepath.Rel(dir, path)
		must(t, err)
		info, err := d.Info()
		must(t, err)
		switch {
		case d.IsDir():
			got[name] = info.Mode().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			must(t, err)
			got[name] = "-> " + target
		default:
			data, err := os.ReadFile(path)
			must(t, err)
			got[name] = info.Mode().String() + " " + string(data)
		}
		return nil
	}))
	return got
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
