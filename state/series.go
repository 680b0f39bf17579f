package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SeriesError refuses a charm whose series and those of machines do not meet; it can be
// forced.
type SeriesError struct{ reason string }

func (e *SeriesError) Error() string { return e.reason }

// MachineSeries lists the series that machines can have; none: any. On "local" that is
// the host's; other providers say what they have when they are examined, and a provider
// that boots machines from trees of files has those that are configured as
// PROVIDER.tree.SERIES, too.
func (e Environment) MachineSeries() []string {
	own := e.HostSeries
	if e.Provider == ProviderLocal {
		own = cmp.Or(own, e.DefaultSeries)
	}
	if own == "" {
		return nil
	}
	all := []string{own}
	for _, key := range slices.Sorted(maps.Keys(e.Config)) {
		if series, ok := strings.CutPrefix(key, e.Provider+".tree."); ok {
			all = append(all, series)
		}
	}
	return all
}

// ChooseSeries returns the series of machines for a charm that supports those; none: all.
// It is the wanted one; else the environment's default if the charm supports it; else the
// first that the charm supports and machines can have. If there is none that is a
// *SeriesError, or with force, or where other series are allowed, the default.
func (e Environment) ChooseSeries(wanted string, supported []string, force bool) (string, error) {
	has := e.MachineSeries()
	candidates := []string{wanted}
	if wanted == "" {
		candidates = supported
		if len(supported) == 0 || slices.Contains(supported, e.DefaultSeries) {
			candidates = append([]string{e.DefaultSeries}, supported...)
		}
	}
	for _, series := range candidates {
		if len(has) == 0 || slices.Contains(has, series) {
			return series, nil
		}
	}
	if force || e.AllowsOtherSeries() {
		return e.DefaultSeries, nil
	}
	return "", &SeriesError{fmt.Sprintf("want series %s, and machines of this environment have %s",
		strings.Join(candidates, " or "), strings.Join(has, " or "))}
}

// AllowsOtherSeries reports whether charms for other series than their machines' are run.
func (e Environment) AllowsOtherSeries() bool { return e.Config[AllowOtherSeries] == "true" }

// checkSeries refuses a charm that does not support the service's series, unless an
// operator has forced it.
func (v *View) checkSeries(s Service, c Charm) error {
	if s.ForceSeries || c.Meta.Supports(s.Series) {
		return nil
	}
	env, err := v.Environment()
	if err == nil && !env.AllowsOtherSeries() {
		err = &SeriesError{fmt.Sprintf("charm %q does not support series %q: it supports %q", c.URL, s.Series, c.Meta.Series)}
	}
	return err
}
