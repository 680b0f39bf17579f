package neco

import (
	"fmt"
	"strings"
)

type bootserverListCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

// Run prints the numbers of the registered servers.
func (c bootserverListCmd) Run(o *operator) error {
	s, err := o.loadSnapshot()
	if err != nil {
		return err
	}
	if c.Format != "text" {
		// An empty list must not become null in JSON.
		return o.encode(c.Format, append([]int{}, s.Servers...))
	}

	var b strings.Builder
	for _, lrn := range s.Servers {
		fmt.Fprintln(&b, lrn)
	}
	return o.print(b.String())
}
