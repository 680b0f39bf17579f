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

// releases serves what lies in a folder: below "tags", the files of each release,
// by GitHub's API at port 8080; below "files", what components are made of, at port
// 8081; and container images at port 8082. The file "fault" says how to misbehave.
// A release is published, or published again, when there is a file "published" with
// it. What was seen to is removed.
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

// misbehave does as the file says, if it is there.
func misbehave(s *github.Server, path string) error {
	fault, err := os.ReadFile(path)
	if err != nil || len(fault) == 0 {
		return nil // nothing is asked, or not yet
	}
	return errors.Join(s.Misbehave(github.Fault(strings.TrimSpace(string(fault)))), os.Remove(path))
}

// read reads the release that lies in a folder named by its tag.
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
