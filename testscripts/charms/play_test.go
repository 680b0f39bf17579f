// Package charms_test runs the hooks of the example charms and of the charms in this directory with fake hook
// tools and without an agent. These tests show that a charm is correct before an agent runs it.
package charms_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bijou/multicall/console"
	"bijou/multicall/tour/site"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "bijou" {
		os.Exit(tourServer(os.Args[2:]))
	}
	if name := filepath.Base(os.Args[0]); slices.Contains(tools, name) {
		os.Exit(playTool(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// tourServer is `bijou tour-server`, the only command of bijou that hooks of the example charms call. It does
// not go through multicall, because multicall would also provide the real hook tools.
func tourServer(args []string) int {
	streams := console.Process()
	parsed, err := console.Parse(streams, console.Command{Name: "tour-server", Grammar: &struct{}{}, Commands: &site.Command{}}, args)
	if err == nil {
		err = parsed.Run(streams)
	}
	return console.Report(streams.Err, err)
}

// play is a small environment whose units run their hooks one after another.
type play struct {
	t     *testing.T
	dir   string
	units map[string]string                       // charm directory by unit
	seen  map[string]map[string]map[string]string // by watcher and "relation unit": settings
}

func newPlay(t *testing.T) *play {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash here")
	}
	p := &play{t: t, dir: t.TempDir(), units: map[string]string{}, seen: map[string]map[string]map[string]string{}}
	self, err := os.Executable()
	p.check(err)
	p.check(os.Mkdir(filepath.Join(p.dir, "tools"), 0o755))
	for _, name := range append([]string{"bijou"}, tools...) {
		p.check(os.Symlink(self, filepath.Join(p.dir, "tools", name)))
	}
	return p
}

func (p *play) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// change applies an edit to the world and saves it.
func (p *play) change(edit func(*world)) {
	p.t.Helper()
	path := filepath.Join(p.dir, "world.json")
	w, err := loadWorld(path)
	p.check(err)
	edit(w)
	p.check(w.save(path))
}

// world returns the current world.
func (p *play) world() (got *world) {
	p.t.Helper()
	p.change(func(w *world) { got = w })
	return got
}

func (p *play) unitDir(unit string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(unit, "/", "-"))
}

// deploy installs and starts a unit.
func (p *play) deploy(unit, charm string) {
	p.t.Helper()
	dir, err := filepath.Abs(charm)
	p.check(err)
	p.units[unit] = dir
	p.seen[unit] = map[string]map[string]string{}
	p.check(os.Mkdir(p.unitDir(unit), 0o755))
	for _, hook := range []string{"install", "config-changed", "start"} {
		p.run(unit, hook)
	}
}

// configure sets options of a service.
func (p *play) configure(service string, values map[string]any) {
	p.t.Helper()
	p.change(func(w *world) {
		if w.Config[service] == nil {
			w.Config[service] = map[string]any{}
		}
		maps.Copy(w.Config[service], values)
	})
}

// run runs one hook, which must succeed. A missing hook is not a failure.
func (p *play) run(unit, hook string, env ...string) {
	p.t.Helper()
	if out, err := p.try(unit, hook, env...); err != nil {
		p.t.Fatalf("%s of %s: %v\n%s", hook, unit, err, out)
	}
}

func (p *play) try(unit, hook string, env ...string) (string, error) {
	p.t.Helper()
	path := filepath.Join(p.units[unit], "hooks", hook)
	if _, err := os.Stat(path); err != nil {
		return "", nil
	}
	service := filepath.Dir(unit)
	out, err := os.Create(filepath.Join(p.dir, "output"))
	p.check(err)
	defer out.Close()
	cmd := exec.Command(path)
	// The output goes to a file and not to a pipe. A daemon that a hook has started would keep the pipe open,
	// and Run would wait for the daemon.
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.units[unit], out, out
	cmd.Env = append([]string{
		"PATH=" + filepath.Join(p.dir, "tools") + ":" + os.Getenv("PATH"), "HOME=" + p.dir,
		"TEST_WORLD=" + filepath.Join(p.dir, "world.json"),
		"JUJU_CLIENT_ID=id-" + hook, "JUJU_UNIT_NAME=" + unit, "JUJU_SERVICE=" + service, "JUJU_HOOK_NAME=" + hook,
		"JUJU_UNIT_DIR=" + p.unitDir(unit), "CHARM_DIR=" + p.units[unit],
	}, env...)
	err = cmd.Run()
	text, readErr := os.ReadFile(out.Name())
	p.check(readErr)
	if len(text) > 0 {
		p.t.Logf("%s of %s: %s", hook, unit, text)
	}
	return string(text), err
}

// runIn runs a hook of a relation.
func (p *play) runIn(unit, id, kind, remote string) {
	p.t.Helper()
	name, _, _ := strings.Cut(id, ":")
	members := []string{}
	if rel := p.world().Relations[id]; rel != nil && kind != "broken" {
		members = slices.DeleteFunc(rel.others(unit), func(u string) bool { return kind == "departed" && u == remote })
	}
	env := []string{
		"JUJU_RELATION=" + name, "JUJU_RELATION_ID=" + id, "JUJU_REMOTE_UNIT=" + remote,
		"JUJU_MEMBERS=" + strings.Join(members, " "),
	}
	if remote != "" {
		env = append(env, "JUJU_REMOTE_APP="+filepath.Dir(remote))
	} else {
		env = append(env, "JUJU_REMOTE_APP=other")
	}
	if kind == "departed" {
		env = append(env, "JUJU_DEPARTING_UNIT="+remote)
	}
	p.run(unit, name+"-relation-"+kind, env...)
}

// enter adds a unit to a relation and runs the hooks that report this to other units.
func (p *play) enter(unit, id string) {
	p.t.Helper()
	var others []string
	p.change(func(w *world) {
		if w.Relations[id] == nil {
			w.Relations[id] = &relation{Settings: map[string]map[string]string{}}
		}
		rel := w.Relations[id]
		rel.Units = append(rel.Units, unit)
		rel.Settings[unit] = map[string]string{"private-address": "127.0.0.1"}
		others = rel.others(unit)
	})
	for _, other := range others {
		for _, pair := range [][2]string{{unit, other}, {other, unit}} {
			p.seen[pair[0]][id+" "+pair[1]] = map[string]string{}
			p.runIn(pair[0], id, "joined", pair[1])
		}
	}
	p.settle()
}

// leave removes a unit from all its relations, runs the other units' hooks, and stops the unit.
func (p *play) leave(unit string) {
	p.t.Helper()
	for id, rel := range p.world().Relations {
		if !slices.Contains(rel.Units, unit) {
			continue
		}
		others := rel.others(unit)
		p.change(func(w *world) {
			rel := w.Relations[id]
			rel.Units = slices.DeleteFunc(rel.Units, func(u string) bool { return u == unit })
		})
		for _, other := range others {
			delete(p.seen[other], id+" "+unit)
			p.runIn(other, id, "departed", unit)
		}
	}
	delete(p.seen, unit)
	p.run(unit, "stop")
	p.settle()
}

// settle runs changed hooks until every unit has seen all settings.
func (p *play) settle() {
	p.t.Helper()
	for range 100 {
		quiet := true
		for _, watcher := range slices.Sorted(maps.Keys(p.seen)) {
			for _, key := range slices.Sorted(maps.Keys(p.seen[watcher])) {
				id, other, _ := strings.Cut(key, " ")
				now := p.world().Relations[id].Settings[other]
				if maps.Equal(p.seen[watcher][key], now) {
					continue
				}
				p.seen[watcher][key], quiet = now, false
				p.runIn(watcher, id, "changed", other)
			}
		}
		if quiet {
			return
		}
	}
	p.t.Fatal("the units do not come to rest: some hook always changes something")
}
