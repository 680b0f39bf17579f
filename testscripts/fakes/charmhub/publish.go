package charmhub

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/state/charm"
)

// Publication is a directory to publish.
type Publication struct {
	Dir      string // the directory of a charm, or of a bundle with bundle.yaml
	Name     string
	Track    string // the new default track; if empty, it does not change
	Channel  string // latest/stable
	Bases    []string
	Arch     string
	Revision int

	Resource string // the name of a resource of which a new revision is published too; empty for none
	Content  []byte // of the resource
}

// PublishDir publishes a directory, as its publisher would.
func (s *Server) PublishDir(p Publication) error {
	c := s.Charm(p.Name)
	c.Summary, c.Publisher = "The charm "+c.Name, "Somebody"
	if p.Track != "" {
		c.DefaultTrack = p.Track
	}

	r := Revision{
		Number:   p.Revision,
		Metadata: readPart(p.Dir, "metadata"),
		Config:   readPart(p.Dir, "config"),
		Actions:  readPart(p.Dir, "actions"),
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "bundle.yaml")); err == nil {
		c.Type = "bundle"
	}
	var err error
	if r.Bytes, err = pack(p.Dir, p.Revision); err != nil {
		return err
	}

	release := Release{Revision: p.Revision, Resources: map[string]int{}}
	var hasRisk bool
	if release.Track, release.Risk, hasRisk = strings.Cut(p.Channel, "/"); !hasRisk {
		return fmt.Errorf("channel %q has no risk", p.Channel)
	}
	if p.Resource != "" {
		c.addResource(p.Resource, p.Content)
		release.Resources[p.Resource] = len(c.Resources[p.Resource].Revisions)
	}

	for _, base := range p.Bases {
		name, version, _ := strings.Cut(base, "@")
		release.Base = Base{Architecture: p.Arch, Name: name, Channel: version}
		r.Bases = append(r.Bases, release.Base)
		c.Releases = slices.DeleteFunc(c.Releases, func(o Release) bool {
			return o.name() == release.name() && o.Base == release.Base
		})
		c.Releases = append(c.Releases, release)
	}
	c.Revisions = slices.DeleteFunc(c.Revisions, func(o Revision) bool { return o.Number == p.Revision })
	c.Revisions = append(c.Revisions, r)
	s.Publish(c)
	return nil
}

func (c *Charm) addResource(name string, content []byte) {
	if c.Resources == nil {
		c.Resources = map[string]Resource{}
	}
	r := c.Resources[name]
	r.Type, r.Filename = "file", name+".bin"
	r.Revisions = append(r.Revisions, content)
	c.Resources[name] = r
}

// pack packs a charm as bijou does. If bijou would refuse the charm, it packs the charm unchanged.
func pack(dir string, revision int) ([]byte, error) {
	var archive bytes.Buffer
	if _, err := charm.Archive(dir, &archive, charm.ArchiveOptions{Revision: revision}); err == nil {
		return archive.Bytes(), nil
	}
	archive.Reset()
	err := zipFolder(dir, &archive)
	return archive.Bytes(), err
}

func zipFolder(dir string, to io.Writer) error {
	w := zip.NewWriter(to)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		return err
	}
	return w.Close()
}

func readPart(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
	if err != nil {
		return ""
	}
	return string(data)
}
