// Package release implements releases: versions and their order, tags, the choice of a release for an
// environment, the verification of its files, and its manifest. The manifest is the plan for updating boot
// servers to the release. A [Source] lists releases and downloads their files, from GitHub or a directory
// with an index. A [Recipe] builds a release in such a directory. The functions that parse, compare, choose or
// verify are pure.
//
// The package installs nothing. The only program that it runs is dpkg-deb, which unpacks and builds packages.
package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// ReadManifest parses a manifest and sorts its components into the order of their updates. That is the order
// in the file, except that a component follows the components under its "after" key. Errors begin with the
// file's name and the line.
func ReadManifest(file string, data []byte) (Manifest, error) {
	return readManifest(file, data, func(*File) error { return nil })
}

// readManifest does what [ReadManifest] does, but before it checks the manifest, it calls complete for each
// file that servers download. complete can change the file.
func readManifest(file string, data []byte, complete func(f *File) error) (Manifest, error) {
	var m Manifest
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err := strict.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := strict.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return Manifest{}, fmt.Errorf("%s: the file contains more than one document", file)
	}

	// Only the nodes have line numbers, which errors contain.
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", file, err)
	}

	r := manifestReader{file: file, root: resolveAlias(root.Content[0])}
	err := m.eachFile(func(f *File) error {
		// A file with a Name is part of the manifest's own release.
		if f.Name != "" {
			f.Release = m.Version
		}
		return complete(f)
	})
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", file, err)
	}

	if err := r.checkManifest(m); err != nil {
		return Manifest{}, err
	}

	m.Components, err = r.orderComponents(m.Components)
	if err != nil {
		return m, err
	}
	m.Digest, err = PlanDigest(data)
	return m, err
}

// VersionIn returns the version in a manifest, or "" if there is none. It ignores all other keys, since the
// manifest may have a later format than this program knows.
func VersionIn(data []byte) (string, error) {
	var m struct{ Version string }
	if err := yaml.Unmarshal(data, &m); err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}

	return m.Version, nil
}

// manifestReader adds the file's name and the line to errors.
type manifestReader struct {
	file string
	root node
}

// errorf returns an error that begins with the file's name and the line of the node.
func (r manifestReader) errorf(at node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", r.file, at.line(), fmt.Errorf(format, args...))
}

// componentNode returns the node of the i-th component in the file.
func (r manifestReader) componentNode(i int) node { return r.root.field("components").item(i) }

// node is a node of the file. In place of a missing field or item, its parent is used, so that errors have a
// line.
type node struct{ *yaml.Node }

// resolveAlias returns the node to which n refers, or n itself if it is not an alias.
func resolveAlias(n *yaml.Node) node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return node{n}
}

// line returns the node's line in the file, from 1.
func (n node) line() int { return max(1, n.Line) }

// field returns the value of the field. If there is no such field, it returns n, so that an error about the
// field has a line.
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

// item returns the item of the list, or n if there is no such item.
func (n node) item(i int) node {
	if n.Kind != yaml.SequenceNode || i >= len(n.Content) {
		return n
	}
	return resolveAlias(n.Content[i])
}

// The actions of steps.
const (
	Stop   = "stop"
	Update = "update"
)

// Step is one step of an update. All servers wait for one another before each step.
type Step struct {
	Number    int       // from 1
	Name      string    // COMPONENT/ACTION
	Action    string    // Stop or Update
	Component Component // the component to stop or update
}

// Steps returns the manifest's steps in order.
func (m Manifest) Steps() []Step {
	var steps []Step
	add := func(action string, c Component) {
		steps = append(steps, Step{
			Number:    len(steps) + 1,
			Name:      c.Name + "/" + action,
			Action:    action,
			Component: c,
		})
	}

	for _, c := range m.Components {
		if c.Strategy == StopAll {
			add(Stop, c)
		}
		add(Update, c)
	}

	return steps
}

// orderComponents returns the components in the manifest's order, except that each component follows the
// components under its "after" key. It returns an error if such a component does not exist, or if components
// wait for one another.
func (r manifestReader) orderComponents(components []Component) ([]Component, error) {
	t := topologicalSort{manifestReader: r, components: components, visited: make([]bool, len(components))}
	for i := range components {
		// The path is empty, since no visit of another component leads here.
		if err := t.visit(i, nil); err != nil {
			return nil, err
		}
	}

	return t.ordered, nil
}

// topologicalSort is a depth-first search along the components' "after" keys.
type topologicalSort struct {
	manifestReader
	components []Component
	visited    []bool // whether each component is in ordered
	ordered    []Component
}

// visit adds component i to the order, after the components that must precede it. path has the names of
// the components that wait for component i, to detect cycles.
func (t *topologicalSort) visit(i int, path []string) error {
	c := t.components[i]
	after := t.componentNode(i).field("after")
	if start := slices.Index(path, c.Name); start >= 0 {
		cycle := append(path[start:], c.Name)
		return t.errorf(after, "components wait for one another: %s", strings.Join(cycle, " after "))
	}
	if t.visited[i] {
		return nil
	}

	path = append(slices.Clone(path), c.Name)
	for k, name := range c.After {
		j := slices.IndexFunc(t.components, func(c Component) bool { return c.Name == name })
		if j < 0 {
			return t.errorf(after.item(k), "component %q must come after %q, but there is no such component",
				c.Name, name)
		}
		if err := t.visit(j, path); err != nil {
			return err
		}
	}

	t.visited[i] = true
	t.ordered = append(t.ordered, c)
	return nil
}
