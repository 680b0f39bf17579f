// Package release knows what a release is: versions and their one order, tags, which release an
// environment takes, which of its files a boot server needs, whether they are what their maker
// published, and the manifest, which says in which steps the release is brought to the boot
// servers. A Source asks where releases are published (GitHub, or a folder with an index), and gets
// files; a Recipe makes a release in such a folder; all else is pure.
//
// It installs nothing, and runs dpkg-deb only, which takes packages apart. The updater's packages may
// import it; of bijou it imports updater/record, updater/activity and leaves of state only.
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

// ReadManifest reads a manifest and puts its components into the order of their updates. That is the order
// in the file, except that a component comes after those in its key after. Errors begin with the file's
// name and the line.
func ReadManifest(file string, data []byte) (Manifest, error) {
	return readManifest(file, data, func(*File) error { return nil })
}

// readManifest reads a manifest. It calls complete for each file before it checks the plan.
func readManifest(file string, data []byte, complete func(f *File) error) (Manifest, error) {
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
	err := m.eachFile(func(f *File) error {
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

	ordered, err := r.orderComponents(m.Components)
	if m.Components = ordered; err != nil {
		return m, err
	}
	m.Digest, err = PlanDigest(data)
	return m, err
}

// VersionIn returns the version of a manifest. It reads nothing else, since the manifest may be of a later
// kind than this program knows.
func VersionIn(data []byte) (string, error) {
	var m struct{ Version string }
	err := yaml.Unmarshal(data, &m)
	if err != nil {
		return m.Version, fmt.Errorf("cannot read the manifest: %w", err)
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

// What a step does with its component.
const (
	Stop   = "stop"
	Update = "update"
)

// Step is one step of an update. Before each, all servers wait for one another.
type Step struct {
	Number    int       // from 1
	Name      string    // COMPONENT/ACTION
	Action    string    // Stop or Update
	Component Component // what it is about
}

// Steps returns the manifest's steps, in order.
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

// orderComponents keeps the manifest's order, but moves components behind those that they must follow.
func (r manifestReader) orderComponents(all []Component) ([]Component, error) {
	o := topologicalSort{manifestReader: r, all: all, visited: make([]bool, len(all))}
	for i := range all {
		if err := o.visit(i, nil); err != nil {
			return nil, err
		}
	}

	return o.ordered, nil
}

// topologicalSort is a depth-first walk along what must come before.
type topologicalSort struct {
	manifestReader
	all     []Component
	visited []bool
	ordered []Component
}

// visit adds component i to the order, after all that it must come after. path holds the components that
// wait for it, to detect circles.
func (o *topologicalSort) visit(i int, path []string) error {
	c := o.all[i]
	after := o.componentNode(i).field("after")
	if at := slices.Index(path, c.Name); at >= 0 {
		return o.errorf(after, "components wait for one another: %s",
			strings.Join(append(path[at:], c.Name), " after "))
	}
	if o.visited[i] {
		return nil
	}

	path = append(slices.Clone(path), c.Name)
	for k, name := range c.After {
		j := slices.IndexFunc(o.all, func(c Component) bool { return c.Name == name })
		if j < 0 {
			return o.errorf(after.item(k), "component %q: there is no component %q that it could come after",
				c.Name, name)
		}
		if err := o.visit(j, path); err != nil {
			return err
		}
	}

	o.visited[i] = true
	o.ordered = append(o.ordered, c)
	return nil
}
