package systemd

import (
	"embed"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/template"

	"bijou/multicall/home"
	"bijou/state/wrap"
)

// ExitFinished is the exit code of a daemon that has nothing to do any more, since its
// environment, machine or unit is gone: it is not started again.
const ExitFinished = 3

// madeByPrefix begins the first line of every unit file that bijou has made.
const madeByPrefix = "# Made by \"bijou install --systemd\" for "

//go:embed *.service
var templates embed.FS

// Unit is one unit file.
type Unit struct {
	Name string // "bijou-machine-default.service"
	Text string
}

// MachineUnitName names the service that is machine 0's process.
func MachineUnitName(e home.Environment) string { return "bijou-machine-" + e.Name + ".service" }

// AgentUnitName names the service that is another machine's process, on a host of its
// own. No environment has an "@" in its name.
func AgentUnitName(e home.Environment, machine string) string {
	return "bijou-machine-" + e.Name + "@" + machine + ".service"
}

// Units makes the unit files of an environment: machine 0's process first, one unit
// alone (a template), and a provisioner alone.
func Units(e home.Environment) ([]Unit, error) {
	return makeUnits(e, "0", map[string]string{
		"machine.service": MachineUnitName(e), "unit.service": "bijou-unit-" + e.Name + "@.service",
		"provisioner.service": "bijou-provisioner-" + e.Name + ".service",
	})
}

// AgentUnits makes the unit file of the process of a machine that is a host of its own.
func AgentUnits(e home.Environment, machine string) ([]Unit, error) {
	return makeUnits(e, machine, map[string]string{"machine.service": AgentUnitName(e, machine)})
}

func makeUnits(e home.Environment, machine string, names map[string]string) ([]Unit, error) {
	all, err := parseTemplates(e.Dir)
	if err != nil {
		return nil, err
	}
	owner, err := ownerOf(e.Dir)
	if err != nil {
		return nil, err
	}
	var units []Unit
	for _, file := range []string{"machine.service", "unit.service", "provisioner.service"} {
		if names[file] == "" {
			continue
		}
		var text strings.Builder
		err := all.ExecuteTemplate(&text, file, map[string]any{
			"Mark": madeByPrefix, "Dir": e.Dir, "Name": e.Name, "Tools": e.ToolsDir(), "User": owner, "Over": ExitFinished,
			"Record": filepath.Join(e.Dir, "environment.yaml"), "MachineUnit": MachineUnitName(e), "Machine": machine,
		})
		if err != nil {
			return nil, fmt.Errorf("cannot make unit file %q: %w", names[file], err)
		}
		units = append(units, Unit{Name: names[file], Text: text.String()})
	}
	return units, nil
}

// parseTemplates refuses a folder that no unit file can name.
func parseTemplates(folder string) (*template.Template, error) {
	if strings.ContainsFunc(folder, func(r rune) bool { return r < ' ' }) {
		return nil, fmt.Errorf("cannot make unit files for the folder %q: it has control characters in its name", folder)
	}
	all, err := template.New("").Funcs(template.FuncMap{"word": quoteWord, "path": escapeSpecifiers}).ParseFS(templates, "*.service")
	return all, wrap.Error(err, "internal error")
}

func escapeSpecifiers(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// quoteWord follows systemd.service(5), "Command lines".
func quoteWord(w string) string {
	w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$").Replace(escapeSpecifiers(w))
	return `"` + w + `"`
}

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

func isMadeFor(text, dir string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return first == madeByPrefix+dir
}
