package do

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bijou/agent/hookexec"
	"bijou/agent/unitfolder"
	"bijou/hookenv/hookapi"
)

// buildEnv returns the operator's own environment, with a hook's variables instead of those
// that an outer hook may have left.
func (r *run) buildEnv(d workDir, client string) []string {
	inherited := map[string]string{}
	var env []string
	for _, pair := range r.Environ {
		name, value, _ := strings.Cut(pair, "=")
		inherited[name] = value
		if !isHookVariable(name) && name != "PATH" {
			env = append(env, pair)
		}
	}
	facts := r.envFacts(d, client)
	if why := facts.Relation.TooManyMembers(); why != "" {
		r.logs.write(r.Unit, "WARNING", why)
	}
	for _, pair := range hookexec.Environment(facts, func(name string) string { return inherited[name] }) {
		name, value, _ := strings.Cut(pair, "=")
		if value != "" && (isHookVariable(name) || name == "PATH") {
			env = append(env, pair)
		}
	}
	if r.Command == nil && filepath.Base(r.Shell) != "bash" {
		env = append(env, fmt.Sprintf("PS1=(%s) $ ", r.Unit))
	}
	return env
}

// isHookVariable leaves out those that choose the environment which commands are about:
// that is the operator's choice.
func isHookVariable(name string) bool {
	chosen := name == "JUJU_ENV" || name == "JUJU_STATE"
	return strings.HasPrefix(name, "JUJU_") && !chosen || name == "CHARM_DIR"
}

func (r *run) envFacts(d workDir, client string) hookexec.Facts {
	f := r.facts
	env := hookexec.Facts{
		Unit: f.unit.Name, Service: f.unit.Service, Charm: f.charmName, Hook: hookName, Machine: f.unit.Machine,
		Tools: d.toolsPath(), Socket: d.socketPath(), ClientID: client,
		Environment: f.env.Name, UUID: f.env.UUID, Version: f.version,
	}
	if folder := r.unitFolder(); folder != "" {
		env.UnitDir, env.CharmDir = string(folder), folder.Charm()
	}
	if f.apiFacts.Relation != hookapi.NoRelation {
		env.Relation = &hookexec.RelationFacts{
			Name: f.relationName, ID: r.relationID(),
			RemoteUnit: f.apiFacts.RemoteUnit, RemoteService: f.apiFacts.RemoteService, Members: f.apiFacts.Members,
		}
	}
	return env
}

func (r *run) relationID() string {
	if r.Dialect == hookapi.Modern && r.facts.relationName != "" {
		return fmt.Sprintf("%s:%d", r.facts.relationName, r.facts.apiFacts.Relation)
	}
	return fmt.Sprintf("relation-%d", r.facts.apiFacts.Relation)
}

func (r *run) unitFolder() unitfolder.Folder {
	if r.Unit == "" || r.MachineDir == nil {
		return ""
	}
	dir := r.MachineDir(r.facts.unit.Machine)
	if dir == "" {
		return ""
	}
	folder := unitfolder.Of(dir, r.Unit)
	for _, f := range []unitfolder.Folder{folder, folder.Legacy()} { // its agent may be an older binary's
		if _, err := os.Stat(f.Charm()); err == nil {
			return f
		}
	}
	return ""
}
