package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/resources"
)

// Found contains the charm and the resources that an application of the bundle names, after the caller has
// found them.
type Found struct {
	charm.Found
	Origin    state.Origin
	IsSame    bool                          // whether the existing service runs this charm
	Resources map[string]resources.Resource // by name, with their checksums
	Source    any                           // the caller's access to the charm's files; Compare does not use it
}

// Force selects the obstacles that the operator has chosen to ignore.
type Force struct {
	Series  bool // charms do not support the series of the machines
	Missing bool // charms need features that bijou does not have
	Trust   bool // services get the cloud's credential
}

// Comparison is a bundle compared with an environment.
type Comparison struct {
	*Bundle
	Found  map[string]Found // by application
	env    Environment
	force  Force
	wanted map[string]*wanted // by application
	names  []string           // the sorted names of the applications

	matched   matching
	relations [][]state.Endpoint
}

// wanted is an application as the bundle describes it, and the existing service with that name.
type wanted struct {
	*Application
	Found
	have        Service // the existing service, or the zero value
	exists      bool    // whether there is an existing service
	series      string
	options     map[string]any
	constraints *constraints.Value // nil to keep the existing constraints
	storage     map[string]charm.Directive
}

// Compare compares a bundle with an environment. The argument found contains the charm and the resources of
// each application. It returns one error with all obstacles to a deployment that it finds. It leaves secrets to
// [Comparison.CheckSecrets]. With an error, the comparison is incomplete.
func Compare(b *Bundle, found map[string]Found, env Environment, force Force) (*Comparison, error) {
	c := &Comparison{
		Bundle: b,
		Found:  found,
		env:    env,
		force:  force,
		wanted: map[string]*wanted{},
		names:  slices.Sorted(maps.Keys(b.Applications)),
	}

	p := placer{bundle: b, done: map[string][]string{}, busy: map[string]bool{}}
	places := map[string][]string{}
	var errs []error
	for _, name := range c.names {
		w := &wanted{Application: b.Applications[name], Found: found[name], options: map[string]any{}}
		w.have, w.exists = env.Services[name]
		c.wanted[name] = w

		obstacles := c.resolveApplication(name, w)
		unitPlaces, err := p.place(name)
		if err != nil {
			obstacles = append(obstacles, err)
		} else {
			places[name] = unitPlaces
		}

		for _, obstacle := range obstacles {
			if obstacle != nil {
				errs = append(errs, fmt.Errorf("application %q: %w", name, obstacle))
			}
		}
	}

	c.matched = env.match(b, places)
	for _, id := range slices.Sorted(maps.Keys(b.Machines)) {
		// Plan calls machineSpec again for its result. Only its errors matter here.
		if _, err := c.machineSpec(id); err != nil {
			errs = append(errs, fmt.Errorf("machine %q: %w", id, err))
		}
	}

	errs = append(errs, c.compareRelations())
	return c, errors.Join(errs...)
}

// compareRelations resolves the bundle's relations to endpoints, and stores each relation once in
// c.relations. It returns one error for all relations that cannot be resolved, or that the environment is
// removing.
func (c *Comparison) compareRelations() error {
	var errs []error
	for _, r := range c.Relations {
		ends, err := state.InferEndpoints(c.findRelated, r[0], r[1])
		if err != nil {
			errs = append(errs, err)
			continue
		}

		existing, exists := c.findRelation(ends)
		if exists && existing.Life != state.Alive {
			errs = append(errs, fmt.Errorf("relation %q is still being destroyed: wait until it is gone", r))
			continue
		}

		if !containsEnds(c.relations, ends) {
			c.relations = append(c.relations, ends)
		}
	}

	return errors.Join(errs...)
}

// resolveApplication sets the constraints, series, options and storage of w. It also checks the application's
// charm, trust and resources, the size of its records, and that a subordinate has no units of its own. It
// returns the errors of all checks. Elements for checks that passed are nil.
func (c *Comparison) resolveApplication(name string, w *wanted) (errs []error) {
	if w.Constraints != nil {
		asked, err := constraints.Parse(*w.Constraints)
		w.constraints = &asked
		errs = append(errs, err)
	}

	series, err := c.chooseSeries(w)
	w.series = series
	if err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, c.checkCharm(w))
	}

	needsTrust := w.Trust != nil && *w.Trust && !w.have.Trusted
	if needsTrust && !c.force.Trust {
		errs = append(errs, errors.New("the application needs the cloud's credential (--trust)"))
	}

	if w.Meta.Subordinate && w.NumUnits > 0 {
		errs = append(errs, errors.New("the application is a subordinate: remove num_units, because each of its units comes with a unit of a related application"))
	}

	for _, option := range slices.Sorted(maps.Keys(w.Options)) {
		node := w.Options[option]
		w.options[option], err = w.Config.ParseNode(option, &node)
		errs = append(errs, err)
	}

	errs = append(errs, w.checkSize(name))
	errs = append(errs, w.chooseStorage())
	for _, resource := range slices.Sorted(maps.Keys(w.Application.Resources)) {
		// This only checks that the charm has the resource, as a file.
		_, err := w.Meta.ResourceFile(resource)
		errs = append(errs, err)
	}

	return errs
}

// checkSize returns an error if the charm's record or the service's options are too large for one
// transaction. Otherwise this error would occur in the middle of the deployment.
func (w *wanted) checkSize(name string) error {
	url := charm.URL{Series: w.series, Name: w.Meta.Name, Revision: w.Found.Revision}
	// The charm has no archive yet, so the record has no checksum and no size.
	record := state.NewCharm(url, w.Found.Charm, "", 0)

	if !w.exists {
		return state.CheckDeployment(record, name, w.options)
	}
	// An upgrade writes the new charm's record, without options.
	if !w.IsSame {
		if err := state.CheckDeployment(record, name, nil); err != nil {
			return err
		}
	}

	options := map[string]any{}
	maps.Copy(options, w.have.Options)
	maps.Copy(options, w.options)
	return state.CheckConfigSize(name, options)
}

// checkCharm returns an error if the application's charm does not support the series, or needs features that
// bijou does not have. It accepts what the operator forces, or has forced for the existing service. This is
// the error that juju deploy or juju refresh would return.
func (c *Comparison) checkCharm(w *wanted) error {
	service := w.have.Service
	service.Series = w.series
	service.ForceSeries = service.ForceSeries || c.force.Series
	service.Force = service.Force || c.force.Missing
	if w.constraints != nil {
		service.Constraints = *w.constraints
	}

	newCharm := state.Charm{
		URL:  charm.URL{Series: w.series, Name: w.Meta.Name, Revision: w.Found.Revision},
		Meta: *w.Meta,
	}

	return errors.Join(service.CheckSeries(c.env.Environment, newCharm), service.CheckMissing(newCharm))
}

// chooseSeries returns the series of an application. The application's own series takes precedence, then the
// charm's, then the bundle's, then that of the existing service, and then the environment's choice. If
// machines cannot have the series that the bundle requires, [state.Environment.ChooseSeries] returns the
// default series or an error. chooseSeries also returns an error if the existing service has a different
// series or is being destroyed.
func (c *Comparison) chooseSeries(w *wanted) (string, error) {
	series, err := c.requiredSeries(w)
	if err != nil {
		return "", err
	}

	if w.exists && w.have.Life != state.Alive {
		return "", errors.New("the application is still being destroyed: wait until it is gone")
	}
	if w.exists && series == "" {
		return w.have.Series, nil
	}

	series, err = c.env.ChooseSeries(series, w.Meta.Series, c.force.Series || w.have.ForceSeries)
	if err != nil {
		return series, err
	}
	if w.exists && series != w.have.Series {
		return series, fmt.Errorf(
			"the application has series %q, but the bundle requires %q: an application's series cannot change",
			w.have.Series, series,
		)
	}

	return series, nil
}

// requiredSeries returns the series that the bundle requires for an application: the application's own, the
// charm's, or the bundle's. It returns "" if the bundle requires none.
func (c *Comparison) requiredSeries(w *wanted) (string, error) {
	series, err := seriesOf(w.Application.Series, w.Base)
	if err != nil {
		return "", err
	}
	if series == "" {
		series = w.Found.Series
	}
	if series != "" {
		return series, nil
	}

	return seriesOf(c.Bundle.Series, c.Base)
}

// machineSpec returns the machine to create for the machine with this number in the bundle. If the bundle
// gives no series for a new machine, it has the series of the applications on it. It returns an error if the
// machine's constraints or series are invalid, or if an application on a new machine needs a series that differs
// from the machine's or from that of another application.
func (c *Comparison) machineSpec(id string) (state.Machine, error) {
	m := c.Machines[id]
	asked, constraintsErr := constraints.Parse(m.Constraints)
	series, seriesErr := seriesOf(m.Series, m.Base)
	if series != "" && seriesErr == nil {
		series, seriesErr = c.env.ChooseSeries(series, nil, c.force.Series)
	}
	if err := errors.Join(constraintsErr, seriesErr); err != nil {
		return state.Machine{}, err
	}

	spec := state.Machine{Constraints: asked, Series: series}
	// An existing machine keeps its series, so the applications on it need no comparison here.
	if c.matched.machines[id] != "" {
		return spec, nil
	}

	for _, name := range c.names {
		appSeries := c.wanted[name].series
		if appSeries == "" || !slices.Contains(c.matched.places[name], id) {
			continue
		}

		if spec.Series != "" && spec.Series != appSeries {
			return state.Machine{}, fmt.Errorf(
				"the bundle requires series %q for the machine, but application %q on it needs %q", spec.Series, name, appSeries)
		}
		spec.Series = appSeries
	}

	return spec, nil
}

// findRelated returns the bundle's application that an endpoint APPLICATION[:NAME] names, for
// [state.InferEndpoints]. The error is always nil, since Parse has checked that the application exists.
func (c *Comparison) findRelated(endpoint string) (state.Related, error) {
	name, _, _ := strings.Cut(endpoint, ":")
	w := c.wanted[name]
	return state.Related{
		Service: state.Service{Name: name, Series: w.series, Subordinate: w.Meta.Subordinate},
		Meta:    w.Meta,
	}, nil
}

// findRelation returns the environment's relation with the endpoints ends, in any order. The result exists is
// false if there is none.
func (c *Comparison) findRelation(ends []state.Endpoint) (r state.Relation, exists bool) {
	isWanted := func(r state.Relation) bool { return haveSameEnds(r.Endpoints, ends) }
	i := slices.IndexFunc(c.env.Relations, isWanted)
	if i < 0 {
		return state.Relation{}, false
	}
	return c.env.Relations[i], true
}

// containsEnds reports whether one of the relations has these endpoints.
func containsEnds(relations [][]state.Endpoint, ends []state.Endpoint) bool {
	return slices.ContainsFunc(relations, func(other []state.Endpoint) bool { return haveSameEnds(ends, other) })
}

// haveSameEnds reports whether two relations have the same endpoints, in any order.
func haveSameEnds(ends, others []state.Endpoint) bool {
	if len(ends) != len(others) {
		return false
	}
	isMissing := func(e state.Endpoint) bool { return !slices.Contains(others, e) }
	return !slices.ContainsFunc(ends, isMissing)
}

// seriesOf returns the series that is given as a series, as a base such as ubuntu@22.04/stable, or as both.
// It returns "" if both are empty. It returns an error if they differ, or if the series is invalid.
func seriesOf(series, base string) (string, error) {
	named := cmp.Or(charm.SeriesOfBase(base), series)
	switch {
	case named == "":
		return "", nil
	case series != "" && series != named:
		return "", fmt.Errorf("series %q and base %q are not the same", series, base)
	}

	return named, charm.CheckSeries(named)
}

// Diff returns the differences between the bundle and the environment, as juju diff-bundle prints them. It
// compares resources by their checksums. The result is empty if there are no differences.
func (c *Comparison) Diff() map[string]any {
	bundle := map[string]any{}
	for name, w := range c.wanted {
		bundle[name] = w.asService().describe()
	}
	model := map[string]any{}
	for name, s := range c.env.Services {
		model[name] = s.describe()
	}

	machines := map[string]any{}
	for id := range c.Machines {
		if c.matched.machines[id] == "" {
			machines[id] = map[string]any{"missing": "model"}
		}
	}

	relations := map[string]any{}
	if additions := c.listBundleAdditions(); len(additions) > 0 {
		relations["bundle-additions"] = additions
	}
	if additions := c.listModelAdditions(); len(additions) > 0 {
		relations["model-additions"] = additions
	}

	diff := map[string]any{"applications": diffParts(bundle, model), "machines": machines, "relations": relations}
	maps.DeleteFunc(diff, func(_ string, part any) bool { return len(part.(map[string]any)) == 0 })
	return diff
}

// listBundleAdditions returns the relations of the bundle that the environment does not have.
func (c *Comparison) listBundleAdditions() (list [][2]string) {
	for _, ends := range c.relations {
		if _, exists := c.findRelation(ends); !exists {
			list = append(list, formatEnds(ends))
		}
	}
	return list
}

// listModelAdditions returns the relations of the environment that the bundle does not have, except peer
// relations.
func (c *Comparison) listModelAdditions() (list [][2]string) {
	for _, r := range c.env.Relations {
		if !r.IsPeer() && !containsEnds(c.relations, r.Endpoints) {
			list = append(list, formatEnds(r.Endpoints))
		}
	}

	return list
}

// asService returns the service that the bundle describes, with the facts that Diff compares.
func (w *wanted) asService() Service {
	// Diff compares only the number of units, so the units are empty.
	s := Service{Options: w.options, Units: make([]state.Unit, w.NumUnits), Resources: w.Found.Resources}
	s.Service.Charm = w.Charm
	if w.constraints != nil {
		s.Constraints = *w.constraints
	}
	s.Storage = w.storage
	s.Exposed = w.Expose != nil && *w.Expose
	s.Trusted = w.Trust != nil && *w.Trust
	if w.IsSame {
		// The bundle and the model name the same charm differently.
		s.Service.Charm = w.have.Service.Charm
	}
	return s
}

// diffParts compares two dictionaries key by key, and also the dictionaries in them. For each key that
// differs, the result contains both values, or the side that does not have the dictionary.
func diffParts(bundle, model map[string]any) map[string]any {
	diff := map[string]any{}
	either := maps.Clone(bundle)
	maps.Copy(either, model)

	for key, value := range either {
		bundlePart, inBundle := bundle[key].(map[string]any)
		modelPart, inModel := model[key].(map[string]any)
		_, isDictionary := value.(map[string]any)

		switch {
		case inBundle && inModel:
			if part := diffParts(bundlePart, modelPart); len(part) > 0 {
				diff[key] = part
			}
		case isDictionary && inBundle:
			diff[key] = map[string]any{"missing": "model"}
		case isDictionary:
			diff[key] = map[string]any{"missing": "bundle"}
		case bundle[key] != model[key]:
			diff[key] = map[string]any{"bundle": bundle[key], "model": model[key]}
		}
	}

	return diff
}

// formatEnds returns both endpoints as APPLICATION:NAME.
func formatEnds(ends []state.Endpoint) [2]string {
	return [2]string{ends[0].String(), ends[1].String()}
}
