package charm

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxHops is how many symlinks Linux follows in one path.
const maxHops = 40

// linkResolver follows the symlinks of a charm as the kernel would, but without a file system. It is not
// enough to check the targets' texts, since a target can lead through a symlink to a directory.
type linkResolver struct {
	links map[string]string // targets by name; both are slash-separated
	tools []string          // names of the hook tools
	steps int               // remaining steps for all symlinks together, so that hostile symlinks cannot cause endless work
}

// newLinkResolver returns a resolver for symlinks with these targets, by name. tools are the names of the hook
// tools.
func newLinkResolver(links map[string]string, tools []string) *linkResolver {
	return &linkResolver{links: links, tools: tools, steps: 2_000_000}
}

// checkLinks returns an error for the first symlink, by name, that resolve cannot follow. It does not check the
// symlinks of hook tools.
func (r *linkResolver) checkLinks() error {
	for _, name := range slices.Sorted(maps.Keys(r.links)) {
		// The target in the archive does not matter, since Unpack replaces it.
		if r.isTool(name) {
			continue
		}
		if _, err := r.resolve(name); err != nil {
			return fmt.Errorf("link %q to %.200q: %w", name, r.links[name], err)
		}
	}

	return nil
}

// isTool reports whether the symlink has the name of a hook tool. Unpack lets such a symlink point to the
// agent's tools, regardless of its target in the archive.
func (r *linkResolver) isTool(name string) bool { return slices.Contains(r.tools, path.Base(name)) }

var (
	errOutside = errors.New("it points outside of the charm")
	errLoop    = errors.New("it is part of a loop")
)

// resolve follows all symlinks in the name, and returns the path to which the name leads. The path need not
// exist, since a hook may create it. If the path leads to the symlink of a hook tool, resolve returns that
// symlink's path. It returns an error if the name leads out of the charm, into a loop or through too many
// symlinks, if a symlink's target is not a path, or if a path becomes too long.
func (r *linkResolver) resolve(name string) (string, error) {
	reached := "." // the path without symlinks that the parts so far lead to
	rest := strings.Split(name, "/")
	hops := 0

	for len(rest) > 0 {
		// A step copies the path, so a long path counts more.
		r.steps -= 1 + len(reached)/256
		if r.steps < 0 {
			return "", errors.New("the charm has too many levels of symlinks")
		}

		part := rest[0]
		rest = rest[1:]

		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if reached == "." {
				return "", errOutside
			}
			reached = path.Dir(reached)
			continue
		}

		next := path.Join(reached, part)
		target, isLink := r.links[next]

		switch {
		case len(next) >= maxPath:
			return "", fmt.Errorf("its path grows longer than %d bytes", maxPath-1)
		case !isLink:
			reached = next
			continue
		case r.isTool(next) && len(rest) == 0:
			return next, nil
		// A tool is a file outside of the charm, so no path can continue behind it.
		case r.isTool(next), strings.HasPrefix(target, "/"):
			return "", errOutside
		case target == "" || strings.ContainsRune(target, 0):
			return "", errors.New("its target is not a path")
		}

		hops++
		if hops > maxHops {
			return "", errLoop
		}

		// The target is relative to the symlink's directory, which is still the reached path.
		rest = append(strings.Split(target, "/"), rest...)
	}

	return reached, nil
}
