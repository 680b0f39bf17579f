package juju

import (
	"cmp"
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
	"bijou/state/resources"
)

// refuseBundleFlags returns an error for flags that apply only to bundles.
func (c deployCmd) refuseBundleFlags() error {
	if len(c.Overlay) > 0 || c.DryRun || c.AllowOutside || c.Format != "tabular" {
		return console.Usage(fmt.Errorf(
			"--overlay, --dry-run, --format and --allow-outside are for bundles, and %q is not one: want a .yaml or .yml file, or a directory with bundle.yaml",
			c.Charm,
		))
	}

	return nil
}

// checkStepSeries returns an error if machines for one of the steps cannot be created, since this host lacks a
// prerequisite of their series. Only steps that deploy an application have a series. With --force or
// --force-series it checks nothing.
func (c deployCmd) checkStepSeries(o *operator, s *state.State, steps []bundle.Step) error {
	env, err := state.Read(o.ctx, s, (*state.View).Environment)
	if err != nil {
		return err
	}

	isForced := liftedBy(c.Force, c.ForceSeries).Series
	for _, step := range steps {
		if step.Series == "" {
			continue
		}
		if err := o.checkSeries(env, step.Series, isForced); err != nil {
			return err
		}
	}
	return nil
}

// refuseCharmFlags returns an error for flags and arguments that apply only to charms.
func (c deployCmd) refuseCharmFlags() error {
	hasText := cmp.Or(c.Service, c.Series, c.JujuVersion, c.HookDialect, c.To) != ""
	hasList := len(c.Config)+len(c.Constraints)+len(c.Resource)+len(c.Storage)+len(c.AttachStorage) > 0
	// One unit is the default.
	hasCount := c.NumUnits != 1
	if hasText || hasList || hasCount {
		return console.Usage(errors.New("a bundle allows only --overlay, --repository, --force, --force-series, --trust, --allow-outside, --dry-run and --format: put everything else into the bundle or an overlay"))
	}

	return nil
}

// deployBundle prints the steps that bring the environment to the bundle's state, and carries them out one by
// one. Before that, it checks the secrets that the bundle's options name, and the series of new applications. After
// upgrades, it removes revisions of charms that no unit runs any more. With --dry-run, it prints the steps, and only
// rehearses them. path is the bundle's file.
func (c deployCmd) deployBundle(o *operator, path string) error {
	if err := c.refuseCharmFlags(); err != nil {
		return err
	}

	return o.withForceHint(c.openBundle(o, path, func(s *state.State, b *bundle.Comparison) error {
		if err := s.View(o.ctx, b.CheckSecrets); err != nil {
			return err
		}

		steps := b.Plan()
		if err := c.checkStepSeries(o, s, steps); err != nil {
			return err
		}
		if err := o.showSteps(c.Format, steps); err != nil {
			return err
		}
		if c.DryRun {
			// If the rehearsal succeeds, Hint returns nil.
			return console.Hint(c.rehearseBundle(o, s, b, steps), "nothing was changed")
		}

		// --wait waits until the bundle's applications are idle.
		o.noteAffected(untilIdle, slices.Collect(maps.Keys(b.Applications))...)
		e := bundleExecutor{
			o:          o,
			base:       s,
			state:      s,
			cmd:        c,
			machines:   b.MachinesThere(),
			Comparison: b,
		}
		if err := e.executeAll(steps); err != nil {
			return console.Hint(err, "the finished steps stay; run the same command again to continue")
		}

		// Of all steps, only an upgrade replaces the revision that a service uses.
		isUpgrade := func(step bundle.Step) bool { return step.Action == bundle.Upgrade }
		if slices.ContainsFunc(steps, isUpgrade) {
			o.sweepCharms(s) // removes revisions that no unit runs
		}
		return nil
	}))
}

// rehearseBundle executes the steps in a rehearsal, and returns the error of the first step that fails. It changes
// nothing in the environment, and prints nothing.
func (c deployCmd) rehearseBundle(o *operator, s *state.State, b *bundle.Comparison, steps []bundle.Step) error {
	return s.Rehearse(o.ctx, func(r *state.Rehearsal) error {
		e := bundleExecutor{
			o:          o.silenced(),
			base:       s,
			state:      r,
			cmd:        c,
			machines:   maps.Clone(b.MachinesThere()), // the rehearsal's machines do not belong in b
			Comparison: b,
		}
		return e.executeAll(steps)
	})
}

// showSteps prints the steps in the given format.
func (o *operator) showSteps(format string, steps []bundle.Step) error {
	if len(steps) == 0 && format == "tabular" {
		o.note("the model has everything in the bundle; nothing to do")
	}
	t := console.NewTable("ACTION", "WHAT", "HOW")
	for _, step := range steps {
		t.Add(console.Plain, step.Action.String(), step.What, step.How)
	}
	return o.printTable(format, steps, t)
}

// bundleExecutor executes the steps of a bundle.
type bundleExecutor struct {
	o        *operator
	base     *state.State // the environment's state
	state    state.Writer // the target of the steps: base, or a rehearsal
	cmd      deployCmd
	machines map[string]string // the result of MachinesThere, and the machines that have been added since then
	*bundle.Comparison
}

// executeAll carries out the steps in order, and stops at the first step that fails.
func (e bundleExecutor) executeAll(steps []bundle.Step) error {
	for i, step := range steps {
		e.o.reportSteps(state.Steps{What: "steps done", Done: i, Total: len(steps)})
		if e.o.parts.Fault != nil {
			e.o.parts.Fault("bundle-step") // tests can kill the program here
		}
		if err := e.execute(step); err != nil {
			return fmt.Errorf("cannot %s %s: %w", step.Action, step.What, err)
		}
	}

	return nil
}

// execute executes one step. After an interruption the whole command can be repeated, since the next
// comparison finds the remaining steps.
func (e bundleExecutor) execute(step bundle.Step) error {
	// A step for a relation has no resources, and does not use service. For all other steps, What is the
	// application.
	service := step.What
	files := map[string]string{}
	for _, resource := range step.Resources {
		files[resource] = e.Applications[service].Resources[resource]
	}

	switch step.Action {
	case bundle.Deploy:
		return e.deploy(step, files)
	case bundle.Upgrade:
		return e.upgrade(service)
	case bundle.Change:
		if f, isStore := e.Found[service].Source.(*storeFinder); isStore {
			return e.changeFromStore(f, step, files)
		}
		// All files are the bundle's, so change needs no release.
		return e.change(step, files, nil)
	case bundle.AddRelation:
		return e.state.Update(e.o.ctx, func(tx *state.Tx) error {
			_, err := tx.AddRelation(step.Relation...)
			return err
		})
	}

	// The only other action is AddUnit.
	return e.addUnits(step)
}

// deploy adds the application of a step, without units, which later steps add. files are the files of its
// resources, by name. For a charm from the store, deploy does not use files.
func (e bundleExecutor) deploy(step bundle.Step, files map[string]string) error {
	lifted := liftedBy(e.cmd.Force, e.cmd.ForceSeries) // the checks that are turned off
	service := state.Service{
		Name:        step.What,
		Storage:     step.Storage,
		ForceSeries: lifted.Series,
		Force:       lifted.Missing, // the check for missing features
	}
	if step.Constraints != nil {
		service.Constraints = *step.Constraints
	}

	d := deployment{
		o:       e.o,
		state:   e.state,
		service: service,
		config:  step.Options,
		series:  step.Series,
	}
	if f, isStore := e.Found[step.What].Source.(*storeFinder); isStore {
		return e.deployFromStore(f, d) // f also has the bundle's files
	}

	d.release = e.Found[step.What].Source.(*charmRelease)
	d.files = files
	return d.run()
}

// upgrade upgrades the application to the bundle's charm, as juju refresh does.
func (e bundleExecutor) upgrade(service string) error {
	// The bundle can name a charm from a different place than the present one, so this is always a switch.
	refresh := refreshCmd{
		Service:     service,
		Switch:      e.Applications[service].Charm,
		Repository:  e.cmd.Repository,
		Force:       e.cmd.Force,
		ForceSeries: e.cmd.ForceSeries,
		DryRun:      e.cmd.DryRun,
	}
	if f, isStore := e.Found[service].Source.(*storeFinder); isStore {
		refresh.Switch = "ch:" + f.name
		refresh.Channel = f.channel
		refresh.Revision = e.Applications[service].Revision
	}

	// settle upgrades, and begins again if somebody else upgrades the service at the same time.
	return refresh.settle(e.o, e.base, e.state)
}

// change applies the options, constraints and all other parts of a step to an existing service, in one
// transaction. A part that is nil stays as it is. files are the files of the step's resources, by name. release is
// the store's release from which files were downloaded, or nil if all files are the bundle's.
func (e bundleExecutor) change(step bundle.Step, files map[string]string, release *charmRelease) error {
	stored, err := e.o.storeResources(e.state, files)
	if err != nil {
		return err
	}
	release.markDownloaded(stored) // does nothing if release is nil

	return e.state.Update(e.o.ctx, func(tx *state.Tx) error {
		if _, err := setOptions(tx, step.What, step.Options); err != nil {
			return err
		}

		if step.Constraints != nil {
			if err := tx.SetServiceConstraints(step.What, *step.Constraints); err != nil {
				return err
			}
		}

		if step.Storage != nil {
			if err := tx.SetServiceStorage(step.What, step.Storage); err != nil {
				return err
			}
		}

		if step.Exposed != nil {
			if err := tx.SetExposed(step.What, *step.Exposed); err != nil {
				return err
			}
		}

		if step.Trusted != nil {
			if err := tx.SetTrusted(step.What, *step.Trusted); err != nil {
				return err
			}
		}

		return putResources(tx, step.What, stored)
	})
}

// addUnits adds the units of a step, and records their machines in e.machines, by the units' names in the bundle.
// If the step's machine is a machine of the bundle that does not exist yet, addUnits adds the machine in one
// transaction with its first unit, and records the machine by its number in the bundle instead. If the command is
// repeated, the record of the first unit identifies the machine.
func (e bundleExecutor) addUnits(step bundle.Step) error {
	machines := e.machines
	existing := machines[step.Place] // the id of the machine, or "" if it does not exist yet
	// Without an existing machine, the place is "" or state.PlaceNew, or a new machine's id replaces it below.
	p := state.Placement{Machine: cmp.Or(existing, step.Place)}
	isBundleMachine := step.Machine != nil
	if isBundleMachine {
		// The unit's record keeps the machine's number in the bundle, so that a later comparison finds it.
		p.Place = step.Place
	}

	if !isBundleMachine || existing != "" {
		// AddUnits also returns the units that it added before an error.
		units, err := e.state.AddUnits(e.o.ctx, step.What, len(step.Units), p)
		for i, u := range units {
			machines[charm.UnitName(step.What, step.Units[i])] = u.Machine
		}
		return err
	}

	// A step for a machine of the bundle has exactly one unit.
	return e.state.Update(e.o.ctx, func(tx *state.Tx) error {
		m, err := tx.AddMachine(*step.Machine)
		if err != nil {
			return err
		}

		p.Machine = m.ID
		machines[step.Place] = m.ID
		_, err = tx.AddUnit(step.What, p)
		return err
	})
}

// findBundle returns the bundle's file for a path: bundle.yaml in a directory that is not a charm or, if the path is
// not a directory, the path itself if it ends in .yaml or .yml. For any other path, isBundle is false, and file
// has no meaning.
func findBundle(path string) (file string, isBundle bool) {
	info, err := os.Stat(path)
	// The name of a file decides, even if the file does not exist. Reading the bundle then fails.
	if err != nil || !info.IsDir() {
		return path, slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
	}

	file = filepath.Join(path, "bundle.yaml")
	if _, err := os.Stat(file); err != nil {
		return file, false
	}
	if _, err := os.Stat(filepath.Join(path, "metadata.yaml")); err == nil {
		return file, false
	}

	// The charmcraft.yaml of a source tree says whether the directory is a charm or a bundle.
	craft, err := readFile(filepath.Join(path, "charmcraft.yaml"), charm.MaxYAML)
	if err != nil {
		// Without a readable charmcraft.yaml, bundle.yaml decides.
		return file, true
	}
	return file, regexp.MustCompile(`(?m)^type:\s*["']?bundle\b`).Match(craft)
}

// openBundle compares the bundle with the chosen environment, and calls f with the result. It removes
// unpacked archives when f has returned.
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

// compareBundle reads the bundle with its overlays, finds its charms, and compares the bundle with the
// environment. Errors about several applications or parts of the bundle are returned together. It prints a
// warning about parts of the bundle that have no effect.
func (c deployCmd) compareBundle(o *operator, s *state.State, path, scratch string) (*bundle.Comparison, error) {
	b, missing, err := c.parseBundle(o, path)
	if err != nil {
		return nil, err
	}
	env, err := state.Read(o.ctx, s, bundle.ReadEnvironment)
	if err != nil {
		return nil, err
	}

	// The error contains those in missing, which are about unsupported parts.
	found, err := c.findBundleCharms(o, s, b, env, scratch, missing)
	if err != nil {
		return nil, err
	}

	if len(b.Ignored) > 0 {
		o.note("warning: these parts of the bundle have no effect: %s", strings.Join(b.Ignored, ", "))
	}
	lifted := liftedBy(c.Force, c.ForceSeries) // the checks that are turned off
	lifted.Trust = c.Trust                     // --trust lets services get the cloud's credential
	return bundle.Compare(b, found, env, lifted)
}

// parseBundle reads the bundle with its overlays. missing has an error for each part that bijou does not
// support. With --force, parseBundle adds these parts to b.Ignored instead. It returns an error if the bundle is
// invalid, or if checkOutside refuses a file. An error about an invalid bundle also contains the errors about
// unsupported parts, unless checkOutside refuses a file.
func (c deployCmd) parseBundle(o *operator, path string) (b *bundle.Bundle, missing []error, err error) {
	paths := append([]string{path}, c.Overlay...)
	for i := range paths {
		if paths[i], err = filepath.Abs(paths[i]); err != nil {
			return nil, nil, fmt.Errorf("cannot read the bundle: %w", err)
		}
	}

	// After an error, b holds the part that was read. Its problems are reported together with the error. Without
	// ReadOutside, Parse only lists the files outside of the bundle's directory, and checkOutside refuses them.
	b, parseErr := bundle.Parse(bundle.Files{
		Read:        func(path string) ([]byte, error) { return readFile(path, state.MaxSetting) },
		Resolve:     resolveSymlinks,
		ReadOutside: c.AllowOutside || c.DryRun,
		FromStore:   c.isFromStore,
	}, paths...)
	if outsideErr := c.checkOutside(o, b); outsideErr != nil {
		return nil, nil, errors.Join(parseErr, outsideErr)
	}

	for _, part := range b.Missing {
		if c.Force {
			b.Ignored = append(b.Ignored, part)
		} else {
			missing = append(missing, fmt.Errorf("bijou does not support this part of the bundle (--force leaves it out): %s", part))
		}
	}

	if parseErr != nil {
		return nil, nil, errors.Join(append([]error{parseErr}, missing...)...)
	}
	return b, missing, nil
}

// findBundleCharms finds the charm of each application, in the store or on this host. errs are earlier errors
// about the bundle, which err also contains. If there are any, findBundleCharms does not ask the store.
func (c deployCmd) findBundleCharms(
	o *operator,
	s *state.State,
	b *bundle.Bundle,
	env bundle.Environment,
	scratch string,
	errs []error,
) (found map[string]bundle.Found, err error) {
	found = map[string]bundle.Found{}
	if len(errs) == 0 {
		// Even with an error, found is a map, to which the loop below adds.
		if found, err = c.findStoreCharms(o, s, b, env, scratch); err != nil {
			errs = append(errs, err)
		}
	}

	for i, name := range slices.Sorted(maps.Keys(b.Applications)) {
		o.reportSteps(state.Steps{What: "applications read", Done: i, Total: len(b.Applications)})
		if c.isFromStore(b.Applications[name].Charm) {
			continue
		}
		if found[name], err = c.readApplication(o, name, b.Applications[name], env.Services[name], scratch); err != nil {
			errs = append(errs, fmt.Errorf("application %q: %w", name, err))
		}
	}

	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return found, nil
}

// checkOutside returns an error if the bundle or an overlay takes options or resources from files outside its
// own directory. The content of these files goes to charms, and a bundle often comes from somebody else. With
// --allow-outside, it returns nil. With --dry-run, it prints a warning for each file, and returns nil.
func (c deployCmd) checkOutside(o *operator, b *bundle.Bundle) error {
	if len(b.Outside) == 0 || c.AllowOutside {
		return nil
	}
	if c.DryRun {
		for _, file := range b.Outside {
			o.note("warning: this file is outside of the bundle's directory, so it is refused without --allow-outside: %s", file)
		}
		return nil
	}

	var errs []error
	for _, file := range b.Outside {
		errs = append(errs, fmt.Errorf("cannot use a file outside of the bundle's directory: %s", file))
	}
	return console.Hint(errors.Join(errs...),
		fmt.Sprintf("to let the bundle's charms read these files: juju %s --allow-outside", quoteShellWords(o.args)))
}

// resolveSymlinks returns the path without symlinks. If it cannot resolve the whole path, for example since the file
// does not exist, it resolves the symlinks in the longest beginning of the path for which it can.
func resolveSymlinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}

	parent := filepath.Dir(path)
	if parent == path {
		return path
	}

	return filepath.Join(resolveSymlinks(parent), filepath.Base(path))
}

// readApplication reads the charm and resources of a bundle's application from this host. deployed is the
// existing service, or the zero value.
func (c deployCmd) readApplication(
	o *operator,
	name string,
	a *bundle.Application,
	deployed bundle.Service,
	scratch string,
) (found bundle.Found, err error) {
	// Each application has its own directory for an unpacked archive.
	if scratch, err = os.MkdirTemp(scratch, name); err != nil {
		return found, err
	}

	// Errors about the charm and its resources are returned together.
	found, charmErr := c.readBundleCharm(o, a, deployed, scratch)
	var resourcesErr error
	found.Resources, resourcesErr = sumResources(a)
	return found, errors.Join(charmErr, resourcesErr)
}

// readBundleCharm reads the charm of a bundle's application from this host, without its resources. deployed is the
// existing service, or the zero value.
func (c deployCmd) readBundleCharm(
	o *operator,
	a *bundle.Application,
	deployed bundle.Service,
	scratch string,
) (found bundle.Found, err error) {
	release, err := charmSource{
		name:       a.Charm,
		repository: c.Repository,
		series:     a.Series,
		tools:      o.parts.HookTools,
	}.find(o.ctx, scratch)
	if err != nil {
		return found, err
	}

	found.Found = release.found
	found.Origin = release.origin("", "") // a charm of this host has no channel, and keeps its own series
	found.Source = release
	// IsSame stays false for a new service, and for a charm with a different name.
	if deployed.Name != "" && found.Meta.Name == deployed.Charm.Meta.Name {
		found.IsSame, err = o.isSameCharm(found.Found, deployed.Charm)
	}
	return found, err
}

// sumResources returns the application's resources by name, with only the checksums of their files. Errors about
// several files are returned together.
func sumResources(a *bundle.Application) (map[string]resources.Resource, error) {
	sums := map[string]resources.Resource{}
	var errs []error
	for resource, path := range a.Resources {
		sum, err := sumResource(path)
		sums[resource] = resources.Resource{SHA256: sum}
		errs = append(errs, err) // Join drops nil
	}
	return sums, errors.Join(errs...)
}
