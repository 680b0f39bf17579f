package charm

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxHops is Linux's limit of links that follow one another.
const maxHops = 40

// linkResolver follows the links of a charm as the kernel would, without a file
// system: a check of the text alone would miss links to folders.
type linkResolver struct {
	links map[string]string // target by name; both slash-separated
	tools []string          // names of hook tools
	steps int               // left for all links together, so that hostile ones end
}

func newLinkResolver(links map[string]string, tools []string) *linkResolver {
	return &linkResolver{links: links, tools: tools, steps: 2_000_000}
}

// checkLinks refuses the first link, by name, that points outside or in circles.
func (r *linkResolver) checkLinks() error {
	for _, name := range slices.Sorted(maps.Keys(r.links)) {
		if r.isTool(name) {
			continue
		}
		if _, err := r.resolve(name); err != nil {
			return fmt.Errorf("link %q to %.200q: %w", name, r.links[name], err)
		}
	}

	return nil
}

// isTool reports whether the link has the name of a hook tool. Unpacking points such a link to the agent's
// tools, wherever it points in the archive.
func (r *linkResolver) isTool(name string) bool { return slices.Contains(r.tools, path.Base(name)) }

var (
	errOutside = errors.New("it points outside of the charm")
	errLoop    = errors.New("it is part of a loop")
)

// resolve follows all links in the name, and returns the path that the name leads to. That path need not
// exist, since a hook may make it. It returns an error if the name leads out of the charm or in a circle.
func (r *linkResolver) resolve(name string) (string, error) {
	at := "."
	todo := strings.Split(name, "/")
	hops := 0

	for len(todo) > 0 {
		if r.steps--; r.steps < 0 {
			return "", errors.New("following the charm's links takes too many steps")
		}

		part := todo[0]
		todo = todo[1:]

		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if at == "." {
				return "", errOutside
			}
			at = path.Dir(at)
			continue
		}

		next := path.Join(at, part)
		target, isLink := r.links[next]

		switch {
		case len(next) >= maxPath:
			return "", fmt.Errorf("its path grows longer than %d bytes", maxPath-1)
		case !isLink:
			at = next
			continue
		case r.isTool(next) && len(todo) == 0:
			return next, nil
		case r.isTool(next), strings.HasPrefix(target, "/"):
			return "", errOutside
		case target == "" || strings.ContainsRune(target, 0):
			return "", errors.New("its target is not a path")
		}

		if hops++; hops > maxHops {
			return "", errLoop
		}
		todo = append(strings.Split(target, "/"), todo...)
	}

	return at, nil
}
