package multicall

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/systemd"
)

// unitFiles writes the unit files of an environment, and says how to go on.
func (i installCmd) unitFiles(s console.Streams) error {
	if !i.Systemd {
		return console.Usage(errors.New("--env, --machine and --systemd-dir go with --systemd"))
	}
	e, err := i.environment()
	if err != nil {
		return console.Hint(err, "--env DIR names an environment's folder, as ~/.bijou/default")
	}
	units, err := i.units(e)
	if err != nil {
		return err
	}
	dir := or(i.SystemdDir, systemd.Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return console.Hint(fmt.Errorf("cannot make the folder %q: %w", dir, err), adviseUnitFiles(err)...)
	}
	var refused []error
	for _, u := range units {
		changed, err := systemd.Install(dir, u, e.Dir, i.Force)
		switch {
		case err != nil:
			refused = append(refused, err)
		case changed:
			fmt.Fprintf(s.Out, "%s: written\n", filepath.Join(dir, u.Name))
		default:
			fmt.Fprintf(s.Out, "%s: there already\n", filepath.Join(dir, u.Name))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return console.Hint(err, adviseUnitFiles(err)...)
	}
	if i.SystemdDir != "" && i.SystemdDir != systemd.Dir {
		return nil // what they are for is not known
	}
	fmt.Fprintf(s.Err, "start it, now and at every boot: systemctl enable --now %s\n", units[0].Name)
	return systemd.Reload()
}

// units makes what is to be written; the first is the machine's.
func (i installCmd) units(e home.Environment) ([]systemd.Unit, error) {
	if i.Machine == "" {
		return systemd.Units(e)
	}
	if n, err := strconv.Atoi(i.Machine); err != nil || n < 1 || strconv.Itoa(n) != i.Machine {
		return nil, console.Usage(fmt.Errorf("cannot make the unit file of machine %q: want a number from 1", i.Machine))
	}
	return systemd.Agent(e, i.Machine)
}

// environment is the one to make unit files for.
func (i installCmd) environment() (home.Environment, error) {
	if i.Env != "" {
		return home.Load(i.Env)
	}
	h, err := home.Find()
	if err != nil {
		return home.Environment{}, err
	}
	return h.Choose("")
}

// adviseUnitFiles says what to do about unit files that could not be written.
func adviseUnitFiles(err error) []string {
	switch {
	case errors.Is(err, systemd.ErrForeign):
		return []string{"--force replaces these files"}
	case errors.Is(err, os.ErrPermission):
		return []string{"call it by sudo, with --env DIR; or write elsewhere, with --systemd-dir DIR"}
	}
	return nil
}
