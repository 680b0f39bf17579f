package charm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkUnpack unpacks a charm of the usual size: about twenty small files.
func BenchmarkUnpack(b *testing.B) {
	files := make([]zipped, 20)
	for i := range files {
		files[i] = zipped{name: fmt.Sprintf("hooks/h%d", i), mode: 0o755, content: "#!/bin/sh\n"}
	}
	data, dir := makeZip(b, files...), b.TempDir()
	for b.Loop() {
		to := filepath.Join(dir, "charm")
		must(b, Unpack(bytes.NewReader(data), int64(len(data)), to, UnpackOptions{}))
		b.StopTimer()
		must(b, os.RemoveAll(to))
		b.StartTimer()
	}
}

// BenchmarkMeta parses a "billion laughs" document.
func BenchmarkMeta(b *testing.B) {
	data := []byte(bomb())
	for b.Loop() {
		if _, err := ParseMeta(data); err == nil {
			b.Fatal("no error")
		}
	}
}
