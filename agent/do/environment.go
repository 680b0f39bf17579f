package do

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bijou/agent/hookexec"
	"bijou/agent/uniter"
	"bijou/hookenv/hookapi"
)

// environment is the operator's own, with a hook's variables in the place of
// those that an outer hook may have left.
func (r *run) environment(p place, client string) []string {
	inherited := map[string]string{}
	var env []string
	for _, pair := range r.Environ {
		name, value, _ := strings.Cut(pair, "=")
		inherited[name] = value
		if !hooks(name) && name != "PATH" {
			env = append(env, pair)
		}
	}
	facts := r.facts(p, client)
	if why := facts.Relation.TooManyMembers(); why != "" {
		r.journal.write(r.Unit, "WARNING", why)
	}
	for _, pair := range hookexec.Environment(facts, func(name string) string { return inherited[name] }) {
		name, value, _ := strings.Cut(pair, "=")
		if value != "" && (hooks(name) || name == "PATH") {
			env = append(env, pair)
		}
	}
	if r.Command == nil && filepath.Base(r.Shell) != "bash" {
		env = append(env, fmt.Sprintf("PS1=(%s) $ ", r.Unit))
	}
	return env
}

// hooks says if a variable is a hook's. Which environment commands are about is
// the operator's choice.
func hooks(name string) bool {
	chosen := name == "JUJU_ENV" || name == "JUJU_STATE"
	return strings.HasPrefix(name, "JUJU_") && !chosen || name == "CHARM_DIR"
}

// facts are what the hook's variables are made of. Those about no unit stay
// empty without one.
func (r *run) facts(p place, client string) hookexec.Facts {
	a := r.about
	f := hookexec.Facts{
		Unit: a.unit.Name, Service: a.unit.Service, Charm: a.charm, Hook: hookName, Machine: a.unit.Machine,
		Tools: p.tools(), Socket: p.socket(), ClientID: client,
		Environment: a.env.Name, UUID: a.env.UUID, Version: a.version,
	}
	if folder := r.unitFolder(); folder != "" {
		f.UnitDir, f.CharmDir = string(folder), folder.Charm()
	}
	if a.facts.Relation != hookapi.NoRelation {
		f.Relation = &hookexec.RelationFacts{
			Name: a.relationName, ID: r.relationID(),
			RemoteUnit: a.facts.RemoteUnit, RemoteService: a.facts.RemoteService, Members: a.facts.Members,
		}
	}
	return f
}

// relationID is the relation's id as the dialect writes it.
func (r *run) relationID() string {
	if r.Dialect == hookapi.Modern && r.about.relationName != "" {
		return fmt.Sprintf("%s:%d", r.about.relationName, r.about.facts.Relation)
	}
	return fmt.Sprintf("relation-%d", r.about.facts.Relation)
}

// unitFolder is the unit's folder, if it lies on this host.
func (r *run) unitFolder() uniter.Folder {
	if r.Unit == "" || r.MachineDir == nil {
		return ""
	}
	dir := r.MachineDir(r.about.unit.Machine)
	if dir == "" {
		return ""
	}
	folder := uniter.FolderOf(dir, r.Unit)
	for _, f := range []uniter.Folder{folder, folder.Legacy()} { // its agent may be of before
		if _, err := os.Stat(f.Charm()); err == nil {
			return f
		}
	}
	return ""
}
