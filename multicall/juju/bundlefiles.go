package juju

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/juju/bundle"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/progress"
)

// findBundle returns a bundle's file: a *.yaml, or bundle.yaml in a folder that is no charm.
func findBundle(path string) (file string, isBundle bool) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
	}
	file = filepath.Join(path, "bundle.yaml")
	_, err = os.Stat(file)
	_, noCharm := os.Stat(filepath.Join(path, "metadata.yaml"))
	craft, noCraft := readFile(filepath.Join(path, "charmcraft.yaml"), charm.MaxYAML)
	return file, err == nil && noCharm != nil && (noCraft != nil || regexp.MustCompile(`(?m)^type:\s*["']?bundle\b`).Match(craft))
}

// openBundle calls f with the bundle held against the chosen environment. Archives are
// unpacked for as long.
func (c deployCmd) openBundle(o *operator, path string, f func(s *state.State, b *bundle.Comparison) error) error {
	scratch, err := os.MkdirTemp("", "bijou-bundle-")
	if err != nil {
		return fmt.Errorf("cannot read the bundle: %w", err)
	}
	defer os.RemoveAll(scratch)
	return o.openChosen(func(s *state.State) error {
		b, err := c.compareBundle(o, s, path, scratch)
		if err != nil {
			return err
		}
		return f(s, b)
	})
}

func (c deployCmd) compareBundle(o *operator, s *state.State, path, scratch string) (*bundle.Comparison, error) {
	paths := append([]string{path}, c.Overlay...)
	for i := range paths {
		var err error
		if paths[i], err = filepath.Abs(paths[i]); err != nil {
			return nil, fmt.Errorf("cannot read the bundle: %w", err)
		}
	}
	b, err := bundle.Parse(func(path string) ([]byte, error) { return readFile(path, state.MaxSetting) }, paths...)
	errs := []error{err}
	for _, missing := range b.Missing {
		if c.Force {
			b.Ignored = append(b.Ignored, missing)
		} else {
			errs = append(errs, fmt.Errorf("bijou cannot do this (--force leaves it out): %s", missing))
		}
	}
	if err != nil {
		return nil, errors.Join(errs...)
	}
	env, err := state.Read(o.ctx, s, bundle.ReadEnvironment)
	if err != nil {
		return nil, err
	}
	found := map[string]bundle.Found{}
	for i, name := range slices.Sorted(maps.Keys(b.Applications)) {
		progress.Report(o.ctx, progress.Steps{What: "applications read", Done: i, Total: len(b.Applications)})
		if found[name], err = c.readApplication(o, name, b.Applications[name], env.Services[name], scratch); err != nil {
			errs = append(errs, fmt.Errorf("application %q: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(b.Ignored) > 0 {
		o.note("warning: what has no effect of the bundle: %s", strings.Join(b.Ignored, ", "))
	}
	return bundle.Compare(b, found, env, bundle.Force{Series: c.ForceSeries, Missing: c.Force, Trust: c.Trust})
}

func (c deployCmd) readApplication(o *operator, name string, a *bundle.Application, have bundle.Service, scratch string) (found bundle.Found, err error) {
	if scheme, _, isURL := strings.Cut(a.Charm, ":"); !filepath.IsAbs(a.Charm) && (c.Repository == "" || isURL && scheme != "local") {
		return found, console.Hint(fmt.Errorf("charm %q is a store's, which bijou does not have", a.Charm),
			"give a charm's path, or say where charms are: --repository DIR (or JUJU_REPOSITORY)")
	}
	if scratch, err = os.MkdirTemp(scratch, name); err != nil {
		return found, err
	}
	found.Found, found.Origin, err = charmSource{a.Charm, c.Repository, a.Series, o.parts.HookTools}.find(scratch)
	if err == nil && have.Name != "" && found.Meta.Name == have.Charm.Meta.Name {
		found.IsSame, err = o.isSameCharm(found.Found, have.Charm)
	}
	found.Resources = map[string]state.Resource{}
	for resource, path := range a.Resources {
		sum, sumErr := sumResource(path)
		found.Resources[resource], err = state.Resource{SHA256: sum}, errors.Join(err, sumErr)
	}
	return found, err
}
