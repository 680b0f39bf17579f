package release

import (
	"slices"
	"strings"
)

// order puts each component behind those it must come after, and leaves them
// otherwise as they are.
func (r reading) order(all []Component) ([]Component, error) {
	o := ordering{reading: r, all: all, done: make([]bool, len(all))}
	for i := range all {
		if err := o.visit(i, nil); err != nil {
			return nil, err
		}
	}
	return o.ordered, nil
}

// ordering is a depth-first walk along what must come before.
type ordering struct {
	reading
	all     []Component
	done    []bool
	ordered []Component
}

// visit adds the i-th component behind what it must come after. path leads to it.
func (o *ordering) visit(i int, path []string) error {
	c := o.all[i]
	after := o.component(i).field("after")
	if at := slices.Index(path, c.Name); at >= 0 {
		return o.errorf(after, "components wait for one another: %s", strings.Join(append(path[at:], c.Name), " after "))
	}
	if o.done[i] {
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
	o.done[i] = true
	o.ordered = append(o.ordered, c)
	return nil
}
