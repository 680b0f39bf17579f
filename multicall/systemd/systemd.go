// Package systemd writes the unit files of an environment, calls systemctl, and finds the service to which a
// process belongs.
//
// Package daemon reports a daemon's state to systemd.
package systemd

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/template"

	"bijou/multicall/home"
	"bijou/state/childenv"
	"bijou/state/osutil"
)

// ExitFinished is the exit code of a daemon that has no more work, since its environment, machine or unit is
// gone. systemd does not start it again.
const ExitFinished = 3

// madeByPrefix begins the first line of every unit file that bijou has created.
const madeByPrefix = "# Made by \"bijou install --systemd\" for "

//go:embed *.service
var templates embed.FS

// Unit is one unit file.
type Unit struct {
	Name string // "bijou-machine-default.service"
	Text string
}

// MachineUnitName returns the name of the service that runs machine 0.
func MachineUnitName(e home.Environment) string { return "bijou-machine-" + e.Name + ".service" }

// AgentUnitName returns the name of the service that runs the agent of a machine other than 0 on its own host. The name
// is unique, since no environment's name contains "@".
func AgentUnitName(e home.Environment, machine string) string {
	return "bijou-machine-" + e.Name + "@" + machine + ".service"
}

// Units returns the unit files of an environment: for machine 0's process, for a single unit
// (a template), and for a separate provisioner, in this order.
func Units(e home.Environment) ([]Unit, error) {
	const machine = "0"
	// The order is that in environmentUnits.
	return environmentUnits(e, machine, map[string]string{
		"machine.service":     MachineUnitName(e),
		"unit.service":        "bijou-unit-" + e.Name + "@.service",
		"provisioner.service": "bijou-provisioner-" + e.Name + ".service",
	})
}

// AgentUnits returns the unit file for the agent of a machine that is a separate host.
func AgentUnits(e home.Environment, machine string) ([]Unit, error) {
	return environmentUnits(e, machine, map[string]string{"machine.service": AgentUnitName(e, machine)})
}

// environmentUnits returns the unit files that names selects. The keys of names are templates, and the values are the
// names of the unit files.
func environmentUnits(e home.Environment, machine string, names map[string]string) (units []Unit, err error) {
	userName, err := ownerOf(e.Dir)
	if err != nil {
		return nil, err
	}

	values := map[string]any{
		"Mark":        madeByPrefix,
		"Dir":         e.Dir,
		"Name":        e.Name,
		"Tools":       e.ToolsDir(),
		"User":        userName,
		"Over":        ExitFinished,
		"Record":      filepath.Join(e.Dir, "environment.yaml"), // without this file, no service starts
		"MachineUnit": MachineUnitName(e),
		"Machine":     machine,
	}
	// Go through the templates in this order, since a map has none, and Units promises it.
	for _, file := range []string{"machine.service", "unit.service", "provisioner.service"} {
		if names[file] == "" {
			continue
		}
		if units, err = appendUnit(units, names[file], file, e.Dir, values); err != nil {
			return units, err
		}
	}

	return units, nil
}

// appendUnit appends the unit file called name, which it creates from the template in file with the values.
// It returns an error if the path folder, which the values contain, has control characters, such as a newline.
func appendUnit(units []Unit, name, file, folder string, values map[string]any) ([]Unit, error) {
	if strings.ContainsFunc(folder, func(r rune) bool { return r < ' ' }) {
		return nil, fmt.Errorf(
			"cannot write unit files for the directory %q: its name has control characters",
			folder,
		)
	}

	functions := template.FuncMap{"word": quoteWord, "path": escapeSpecifiers}
	parsed, err := template.New("").Funcs(functions).ParseFS(templates, "*.service")
	if err != nil {
		return nil, fmt.Errorf("cannot write unit file %q: %w", name, err)
	}
	var text strings.Builder
	if err := parsed.ExecuteTemplate(&text, file, values); err != nil {
		return nil, fmt.Errorf("cannot write unit file %q: %w", name, err)
	}

	return append(units, Unit{Name: name, Text: text.String()}), nil
}

// escapeSpecifiers escapes the percent signs in a path, which begin specifiers in unit files.
func escapeSpecifiers(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// quoteWord quotes a word of a command line as in systemd.service(5), "Command lines".
func quoteWord(w string) string {
	w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$").Replace(escapeSpecifiers(w))
	return `"` + w + `"`
}

// ownerOf returns the name of the user who owns the directory, or the user's number if it has no name.
func ownerOf(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the owner of %q: %w", dir, err)
	}

	id := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid))
	if u, err := user.LookupId(id); err == nil {
		return u.Username, nil
	}

	return id, nil
}

// isMadeFor reports whether bijou has created the unit file with this text for the owner.
func isMadeFor(text, owner string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return first == madeByPrefix+owner
}

// Dir is the directory of an operator's unit files.
const Dir = "/etc/systemd/system"

// ErrForeign is returned if the existing file is not of bijou, or is of bijou for a different environment.
var ErrForeign = errors.New("the file does not belong to this model")

// Install writes the unit file into the directory by rename, and reports whether the file has changed. If the
// write fails, it reports true, since the file may have changed. Unless force is true, it returns ErrForeign
// if bijou has not created the existing file for the same owner. The owner is an environment's directory, or
// NecoOwner.
func Install(dir string, u Unit, owner string, force bool) (changed bool, err error) {
	path := filepath.Join(dir, u.Name)
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) == u.Text:
		return false, nil
	case err == nil && !force && !isMadeFor(string(old), owner):
		return false, fmt.Errorf("cannot write %q: %w", path, ErrForeign)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("cannot read %q: %w", path, err)
	}

	err = osutil.WriteFile(path, []byte(u.Text), 0o644, osutil.ExactMode)
	if err != nil {
		return true, fmt.Errorf("cannot write %q: %w", path, err)
	}

	return true, nil
}

// RemoveEnvironment removes those of the environment's [Units] that bijou has created in Dir. If systemd runs on
// this host, it first tries to stop and disable each of them.
func RemoveEnvironment(e home.Environment) error {
	units, err := Units(e)
	if err != nil {
		return err
	}

	owner := e.Dir
	_, err = Remove(Dir, units, owner) // the names of the removed files are not needed
	return err
}

// Remove removes those of the unit files that bijou has created for the owner, and returns their names. It
// keeps unit files of other owners, and files that it cannot read. If dir is Dir and systemd runs, it stops
// and disables each unit first and, if it has removed any, makes systemd read its unit files again at the
// end, also after an error. If it cannot remove a unit file, it leaves the remaining ones and returns an error.
func Remove(dir string, units []Unit, owner string) (removed []string, err error) {
	isLoaded := dir == Dir && IsRunning() // systemd has read the unit files in dir
	var removeErr error
	for _, u := range units {
		path := filepath.Join(dir, u.Name)
		text, err := os.ReadFile(path)
		if err != nil || !isMadeFor(string(text), owner) {
			continue
		}

		if isLoaded {
			// This fails for a template, which cannot be enabled or run.
			_, _ = systemctl("disable", "--now", "--quiet", u.Name)
		}

		if err := os.Remove(path); err != nil {
			removeErr = fmt.Errorf("cannot remove the unit file: %w", err)
			break
		}
		removed = append(removed, u.Name)
	}

	if len(removed) == 0 || !isLoaded {
		return removed, removeErr
	}

	// Forget the failure of a unit that was started again in the meantime, and has found no environment. The error of
	// systemctl is ignored, since systemd may already have unloaded the unit.
	for _, name := range removed {
		_, _ = systemctl("reset-failed", name)
	}

	reloadErr := Reload() // also after an error
	return removed, errors.Join(removeErr, reloadErr)
}

// ReadUnitFiles returns the texts of all of bijou's unit files in Dir, one after the other. It leaves out files
// that were removed in the meantime, or that cannot be read.
func ReadUnitFiles() string {
	files, _ := filepath.Glob(filepath.Join(Dir, "bijou-*.service"))
	var texts strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		texts.Write(text)
	}

	return texts.String()
}

// NecoOwner is the owner in neco's unit files. The owner in an environment's unit files is its directory.
const NecoOwner = "neco"

// NecoUnits returns the unit files of neco's daemons, whose programs are in the directory bin.
func NecoUnits(bin string) (units []Unit, err error) {
	for _, daemon := range []struct{ name, does string }{
		{"neco-worker", "updates this boot server to new releases"},
		{"neco-updater", "looks for releases, and leads the boot servers through updates"},
	} {
		values := map[string]any{
			"Mark":    madeByPrefix,
			"Owner":   NecoOwner,
			"Does":    daemon.does,
			"Program": filepath.Join(bin, daemon.name),
		}
		if units, err = appendUnit(units, daemon.name+".service", "neco.service", bin, values); err != nil {
			return nil, err
		}
	}

	return units, nil
}

// IsRunning reports whether systemd manages this host (sd_booted(3)).
func IsRunning() bool {
	_, err := os.Lstat("/run/systemd/system")
	return err == nil
}

// Reload makes systemd read its unit files again, if systemd runs on this host.
func Reload() error {
	if !IsRunning() {
		return nil
	}
	_, err := systemctl("daemon-reload")
	return err
}

// Manages reports whether machine 0 of the environment is a service of systemd: systemd runs on this host, and the
// unit file that bijou has created for this environment's machine is installed and enabled.
func Manages(e home.Environment) bool {
	text, err := os.ReadFile(filepath.Join(Dir, MachineUnitName(e)))
	if err != nil || !isMadeFor(string(text), e.Dir) || !IsRunning() {
		return false
	}
	_, err = systemctl("is-enabled", "--quiet", MachineUnitName(e))
	return err == nil
}

// Start makes systemd start machine 0's process, and does not wait for the start.
func Start(e home.Environment) error {
	_, err := systemctl("start", "--no-block", MachineUnitName(e))
	return err
}

// Stop makes systemd stop one of bijou's services, and waits until it has ended.
func Stop(service string) error {
	_, err := systemctl("stop", service)
	return err
}

// IsActive reports whether machine 0's service is running, or is about to start.
func IsActive(e home.Environment) bool {
	// If this fails, the output is not one of the states below.
	state, _ := systemctl("show", "--property=ActiveState", "--value", MachineUnitName(e))
	return state == "active" || state == "activating" || state == "reloading"
}

// ServiceOf returns the service called bijou-* whose control group has the process. It returns "" if there is
// none, or if it cannot find out.
func ServiceOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}

	for line := range strings.Lines(string(data)) {
		name := path.Base(strings.TrimSpace(line))
		if strings.HasPrefix(name, "bijou-") && strings.HasSuffix(name, ".service") {
			return name
		}
	}

	return ""
}

// systemctl runs systemctl, and returns its trimmed output. The error of a failed call contains the output.
func systemctl(args ...string) (string, error) {
	c := exec.Command("systemctl", append([]string{"--no-ask-password"}, args...)...)
	c.Env = childenv.New(os.Environ(), childenv.Program)
	combined, err := c.CombinedOutput()
	output := strings.TrimSpace(string(combined))
	if err != nil {
		return output, fmt.Errorf("cannot run systemctl %s: %w: %s", strings.Join(args, " "), err, output)
	}

	return output, nil
}
