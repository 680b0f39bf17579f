package install

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/systemd"
	"bijou/state/osutil"
)

// unitSet has the unit files of one environment, or of neco's daemons.
type unitSet struct {
	owner string // the environment's directory, or systemd.NecoOwner
	units []systemd.Unit
	start string // the names of the units to enable, separated by spaces
}

// installUnitFiles writes the unit files that the flags select. If they are not in [systemd.Dir], that is all.
// Otherwise, for neco's daemons, it creates the directory of their configuration, and prints what to write there. At
// the end it prints how to start the units, and makes systemd read the files.
func (i Command) installUnitFiles(s console.Streams) error {
	set, err := i.selectUnits()
	if err != nil {
		return err
	}
	if i.Neco && i.Dir == "" {
		if err := checkNecoWorker(); err != nil {
			return err
		}
	}

	dir := cmp.Or(i.SystemdDir, systemd.Dir)
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
		return console.Hint(fmt.Errorf("cannot create the directory %q: %w", dir, err), unitFileHints(err)...)
	}

	if err := i.writeUnitFiles(s, dir, set); err != nil {
		return console.Hint(err, unitFileHints(err)...)
	}

	// systemd may not read a different directory, so do not tell the operator to start the units.
	if i.SystemdDir != "" && i.SystemdDir != systemd.Dir {
		return nil
	}

	if i.Neco {
		if err := osutil.MkdirAll("/etc/neco", 0o755); err != nil {
			return fmt.Errorf("cannot create the directory of neco's configuration: %w", err)
		}

		fmt.Fprintln(
			s.Err,
			"first write NECO_STATE=URL to /etc/neco/environment, and this server's number to /etc/neco/rack",
		)
	}

	fmt.Fprintf(s.Err, "to start it now and at every boot: systemctl enable --now %s\n", set.start)
	return systemd.Reload()
}

// writeUnitFiles writes the unit files into dir, and prints the outcome for each. After an error it continues with the
// next unit file. It returns all errors.
func (i Command) writeUnitFiles(s console.Streams, dir string, set unitSet) error {
	var errs []error
	for _, u := range set.units {
		changed, err := systemd.Install(dir, u, set.owner, i.Force)
		switch {
		case err != nil:
			errs = append(errs, err)
		case changed:
			fmt.Fprintf(s.Out, "%s: written\n", filepath.Join(dir, u.Name))
		default:
			fmt.Fprintf(s.Out, "%s: already up to date\n", filepath.Join(dir, u.Name))
		}
	}

	return errors.Join(errs...)
}

// selectUnits returns the unit files that the flags select, for neco's daemons or for an environment. It returns a
// usage error if flags about unit files are given without --systemd.
func (p places) selectUnits() (unitSet, error) {
	if !p.Systemd {
		return unitSet{}, console.Usage(errors.New("--env, --machine, --neco and --systemd-dir need --systemd"))
	}
	if p.Neco {
		return p.necoUnits()
	}

	e, err := p.chooseEnvironment()
	if err != nil {
		return unitSet{}, console.Hint(err, "give the model's directory, for example: --env ~/.bijou/default")
	}
	units, err := p.environmentUnits(e)
	if err != nil {
		return unitSet{}, err
	}

	// The first unit is the machine's. It also runs the machine's units and, on machine 0, the provisioner.
	return unitSet{owner: e.Dir, units: units, start: units[0].Name}, nil
}

// checkNecoWorker returns an error if neco-worker is not beside this binary. It does not look for neco-updater.
func checkNecoWorker() error {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(binary), "neco-worker")); err != nil {
		return console.Hint(fmt.Errorf("cannot find neco-worker: %w", err),
			"give the directory of the symlinks, which are then also created: --dir DIR")
	}
	return nil
}

// necoUnits returns the unit files of neco's daemons. Their programs are the symlinks in --dir or, without --dir,
// those beside this binary.
func (p places) necoUnits() (unitSet, error) {
	if p.Env != "" || p.Machine != "" {
		return unitSet{}, console.Usage(errors.New("--neco cannot be used with --env or --machine: neco has no model"))
	}

	bin := p.Dir
	if bin == "" {
		binary, err := applet.ExecutablePath()
		if err != nil {
			return unitSet{}, err
		}
		bin = filepath.Dir(binary)
	}

	units, err := systemd.NecoUnits(bin)
	return unitSet{owner: systemd.NecoOwner, units: units, start: "neco-updater neco-worker"}, err
}

// environmentUnits returns the unit files of an environment. Machine 0's unit file comes first. With --machine, it
// returns only the unit file of that machine, and a usage error unless the machine's id is a number from 1.
func (p places) environmentUnits(e home.Environment) ([]systemd.Unit, error) {
	if p.Machine == "" {
		return systemd.Units(e)
	}
	number, err := strconv.Atoi(p.Machine)
	isMachineID := err == nil && number >= 1 && strconv.Itoa(number) == p.Machine // without leading zeros
	if !isMachineID {
		return nil, console.Usage(fmt.Errorf("cannot write the unit file of machine %q: want a number from 1",
			p.Machine))
	}

	return systemd.AgentUnits(e, p.Machine)
}

// chooseEnvironment returns the environment in the directory of --env. Without --env, it returns the environment that a
// juju command without -e uses.
func (p places) chooseEnvironment() (home.Environment, error) {
	if p.Env != "" {
		return home.Load(p.Env)
	}
	h, err := home.Find()
	if err != nil {
		return home.Environment{}, err
	}

	return h.Choose("")
}

// unitFileHints returns hints for an error about unit files.
func unitFileHints(err error) []string {
	switch {
	case errors.Is(err, systemd.ErrForeign):
		return []string{"--force replaces these files"}
	case errors.Is(err, os.ErrPermission):
		return []string{"use sudo, with --env DIR; or write to a different directory: --systemd-dir DIR"}
	}

	return nil
}
