package boot

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/testscripts/fakes/github"
)

// releases serves a directory. Below "tags" are the files of each release, served with GitHub's API at port
// 8080. Below "files" are the files of components, served at port 8081. Container images are at port 8082.
// The file "fault" contains a fault. A file "published" in a release publishes it, for the first time or
// again. The server removes both files once it has obeyed them.
func releases(dir string) error {
	l, err := net.Listen("tcp", outside+":8080")
	if err != nil {
		return err
	}
	s := github.On(l)
	for address, handler := range map[string]http.Handler{
		outside + ":8081": http.FileServer(http.Dir(filepath.Join(dir, "files"))),
		images:            registry(filepath.Join(dir, "images")),
	} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		go func() { _ = http.Serve(l, handler) }()
	}
	for ; ; time.Sleep(20 * time.Millisecond) {
		if err := misbehave(s, filepath.Join(dir, "fault")); err != nil {
			return err
		}
		tags, _ := filepath.Glob(filepath.Join(dir, "tags", "*", "published"))
		for _, t := range tags {
			r, err := read(filepath.Dir(t))
			if err != nil {
				return err
			}
			s.Publish(r)
			if err := os.Remove(t); err != nil {
				return err
			}
		}
	}
}

// misbehave turns on the fault that the file "fault" names, if the file exists.
func misbehave(s *github.Server, path string) error {
	fault, err := os.ReadFile(path)
	if err != nil || len(fault) == 0 {
		return nil // there is no fault file, or it is still empty
	}
	return errors.Join(s.Misbehave(github.Fault(strings.TrimSpace(string(fault)))), os.Remove(path))
}

// read reads a release from a directory that is named after its tag.
func read(dir string) (github.Release, error) {
	r := github.Release{Tag: filepath.Base(dir), Files: map[string][]byte{}}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if name := f.Name(); name != "published" && err == nil {
			r.Files[name], err = os.ReadFile(filepath.Join(dir, name))
		}
	}
	return r, err
}
