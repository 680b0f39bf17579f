package boot

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/testscripts/github"
)

// releases serves what lies in a folder: below "tags", the files of each release,
// by GitHub's API at port 8080; below "files", what components are made of, at port 8081.
// The file "fault" says how to misbehave.
func releases(dir string) error {
	l, err := net.Listen("tcp", outside+":8080")
	if err != nil {
		return err
	}
	s := github.On(l)
	files, err := net.Listen("tcp", outside+":8081")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(files, http.FileServer(http.Dir(filepath.Join(dir, "files")))) }()
	published := map[string]bool{}
	for ; ; time.Sleep(50 * time.Millisecond) {
		if fault, err := os.ReadFile(filepath.Join(dir, "fault")); err == nil {
			if err := s.Misbehave(github.Fault(strings.TrimSpace(string(fault)))); err != nil {
				return err
			}
		}
		tags, _ := filepath.Glob(filepath.Join(dir, "tags", "*", "published"))
		for _, t := range tags {
			tag := filepath.Base(filepath.Dir(t))
			if published[tag] {
				continue
			}
			published[tag] = true
			r := github.Release{Tag: tag, Files: map[string][]byte{}}
			debs, _ := filepath.Glob(filepath.Join(dir, "tags", tag, "*.deb"))
			for _, f := range debs {
				if r.Files[filepath.Base(f)], err = os.ReadFile(f); err != nil {
					return err
				}
			}
			s.Publish(r)
		}
	}
}
