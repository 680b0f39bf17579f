package release

import (
	"slices"
	"strings"
)

// orderComponents keeps the manifest's order, but for components that must come after
// others.
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

func (o *topologicalSort) visit(i int, path []string) error {
	c := o.all[i]
	after := o.componentNode(i).field("after")
	if at := slices.Index(path, c.Name); at >= 0 {
		return o.errorf(after, "components wait for one another: %s", strings.Join(append(path[at:], c.Name), " after "))
	}
	if o.visited[i] {
		return nil
	}
	path = append(slices.Clone(path), c.Name)
	for k, name := range c.After {
		j := slices.IndexFunc(o.all, func(c Component) bool { return c.Name == name })
		if j < 0 {
			return o.errorf(after.item(k), "component %q: there is no component %q that it could come after", c.Name, name)
		}
		if err := o.visit(j, path); err != nil {
			return err
		}
	}
	o.visited[i] = true
	o.ordered = append(o.ordered, c)
	return nil
}
