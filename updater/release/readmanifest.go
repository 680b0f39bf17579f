package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// ReadManifest reads a manifest and puts its components into the order in which they are
// updated: that of the file, but for those that must come after others. Errors begin with
// the file's name and the line.
func ReadManifest(file string, data []byte) (Manifest, error) {
	var m Manifest
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err := strict.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := strict.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return Manifest{}, fmt.Errorf("%s: it holds more than one document", file)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", file, err)
	}
	r := manifestReader{file: file, root: resolveAlias(root.Content[0])}
	if err := r.checkManifest(m); err != nil {
		return Manifest{}, err
	}
	ordered, err := r.orderComponents(m.Components)
	if m.Components = ordered; err != nil {
		return m, err
	}
	m.Digest, err = PlanDigest(data)
	return m, err
}

// VersionIn returns the version of a manifest, whatever else is in it: it may be of a
// later kind than this program knows.
func VersionIn(data []byte) (string, error) {
	var m struct{ Version string }
	if err := yaml.Unmarshal(data, &m); err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}
	return m.Version, nil
}

// manifestReader knows the file and its lines, for errors.
type manifestReader struct {
	file string
	root node
}

func (r manifestReader) errorf(at node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", r.file, at.line(), fmt.Errorf(format, args...))
}

func (r manifestReader) componentNode(i int) node { return r.root.field("components").item(i) }

// node is a place in the file. A missing one is where it would be.
type node struct{ *yaml.Node }

func resolveAlias(n *yaml.Node) node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return node{n}
}

func (n node) line() int { return max(1, n.Line) }

// field returns n if there is no such field.
func (n node) field(key string) node {
	if n.Kind != yaml.MappingNode {
		return n
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolveAlias(n.Content[i+1])
		}
	}
	return n
}

// item returns n if there is no such item.
func (n node) item(i int) node {
	if n.Kind != yaml.SequenceNode || i >= len(n.Content) {
		return n
	}
	return resolveAlias(n.Content[i])
}
