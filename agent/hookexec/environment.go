package hookexec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Facts are the facts from which [Environment] builds a hook's environment variables.
type Facts struct {
	Unit      string // "myblog/0"
	Service   string
	Charm     string // the charm's name
	Hook      string // the hook's name
	Machine   string // the machine's id
	Principal string // a subordinate's principal unit, or empty

	UnitDir  string
	CharmDir string
	Tools    string // the directory with the unit's hook tools
	Socket   string
	ClientID string

	Environment string // the environment's name
	UUID        string // the environment's UUID
	Version     string // the version of Juju that the hook sees
	Proxies     Proxies

	Relation *RelationFacts // set in relation hooks
	Action   *ActionFacts   // set in actions and commands
	Secret   *SecretFacts   // set in hooks about a secret
	Storage  *StorageFacts  // set in hooks about a storage
}

// Proxies are the proxies that the environment sets for charms. Each field can be empty.
type Proxies struct{ HTTP, HTTPS, FTP, None string }

// StorageFacts describe the storage of a storage hook.
type StorageFacts struct {
	ID       string // "data/0"
	Location string // the path of the storage's directory in the unit
}

// SecretFacts describe the secret of a secret hook.
type SecretFacts struct {
	ID       string // the secret's URI
	Label    string // the unit's label for the secret
	Revision int    // the revision that the hook concerns, or 0 if it does not concern a single revision
}

// ActionFacts describe an action or a command.
type ActionFacts struct {
	Name string // the action's name, or empty for a command
	ID   string
}

// RelationFacts describe the relation of a relation hook.
type RelationFacts struct {
	Name          string // the relation's name in the local charm
	ID            string // in the form that the charm's dialect uses
	RemoteUnit    string
	RemoteService string
	Members       []string
	Departing     string // the departing unit; set in -departed hooks
}

// maxVariableSize limits one NAME=VALUE with its terminating zero byte, in bytes. Linux does not start a
// process with a longer variable.
const maxVariableSize = 128 << 10

// defaultPath is the PATH of hooks if the agent has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment returns the whole environment of a hook, as NAME=VALUE. It reads the agent's own variables with
// getenv, and passes on only PATH, HOME, USER, the locale and the proxies.
func Environment(f Facts, getenv func(string) string) []string {
	env := []string{
		"JUJU_SOCKET=" + f.Socket,
		"JUJU_AGENT_SOCKET=" + f.Socket,
		"JUJU_AGENT_SOCKET_ADDRESS=" + f.Socket,
		"JUJU_AGENT_SOCKET_NETWORK=unix",
		"JUJU_CLIENT_ID=" + f.ClientID,
		"JUJU_CONTEXT_ID=" + f.ClientID,
		"JUJU_LOCAL_UNIT=" + f.Unit,
		"JUJU_UNIT_NAME=" + f.Unit,
		"JUJU_SERVICE=" + f.Service,
		"JUJU_CHARM=" + f.Charm,
		"JUJU_UNIT_DIR=" + f.UnitDir,
		"CHARM_DIR=" + f.CharmDir,
		"JUJU_CHARM_DIR=" + f.CharmDir,
		"PWD=" + f.CharmDir,
	}

	env = append(env, f.hookVariables()...)
	env = append(env,
		"JUJU_MODEL_NAME="+f.Environment,
		"JUJU_ENV_NAME="+f.Environment,
		"JUJU_MODEL_UUID="+f.UUID,
		"JUJU_ENV_UUID="+f.UUID,
		"JUJU_MACHINE_ID="+f.Machine,
		"JUJU_VERSION="+f.Version,
		"JUJU_API_ADDRESSES=",
		"JUJU_AVAILABILITY_ZONE=",
		"CLOUD_API_VERSION=",
		"JUJU_CHARM_HTTP_PROXY="+f.Proxies.HTTP,
		"JUJU_CHARM_HTTPS_PROXY="+f.Proxies.HTTPS,
		"JUJU_CHARM_FTP_PROXY="+f.Proxies.FTP,
		"JUJU_CHARM_NO_PROXY="+f.Proxies.None,
		"JUJU_PRINCIPAL_UNIT="+f.Principal, // libraries recognize a principal unit by the empty value
		"DEBIAN_FRONTEND=noninteractive",
		"APT_LISTCHANGES_FRONTEND=none",
		"TERM=dumb",
	)

	if f.Relation != nil {
		env = append(env, f.Relation.variables()...)
	}
	if s := f.Secret; s != nil {
		env = append(env, "JUJU_SECRET_ID="+s.ID, "JUJU_SECRET_LABEL="+s.Label)
		if s.Revision > 0 {
			env = append(env, "JUJU_SECRET_REVISION="+strconv.Itoa(s.Revision))
		}
	}

	if s := f.Storage; s != nil {
		env = append(env, "JUJU_STORAGE_ID="+s.ID, "JUJU_STORAGE_LOCATION="+s.Location,
			"JUJU_STORAGE_KIND=filesystem")
	}

	return append(env, inheritedVariables(f.Tools, getenv)...)
}

// hookVariables returns the variables that name the hook or the action. For a command it returns only an empty
// JUJU_HOOK_NAME.
func (f Facts) hookVariables() []string {
	switch {
	case f.Action == nil:
		return []string{"JUJU_HOOK_NAME=" + f.Hook, "JUJU_DISPATCH_PATH=hooks/" + f.Hook}
	case f.Action.Name == "": // a command, which has no name
		return []string{"JUJU_HOOK_NAME="}
	}

	return []string{
		"JUJU_HOOK_NAME=", // libraries recognize an action by the empty value
		"JUJU_ACTION_NAME=" + f.Action.Name,
		"JUJU_ACTION_UUID=" + f.Action.ID,
		"JUJU_ACTION_TAG=action-" + f.Action.ID,
		"JUJU_DISPATCH_PATH=actions/" + f.Action.Name,
	}
}

// variables returns the variables that describe the hook's relation. It leaves out JUJU_MEMBERS if the relation
// has too many members.
func (r *RelationFacts) variables() []string {
	env := []string{
		"JUJU_RELATION=" + r.Name,
		"JUJU_RELATION_ID=" + r.ID,
		"JUJU_REMOTE_UNIT=" + r.RemoteUnit,
		"JUJU_REMOTE_APP=" + r.RemoteService,
		"JUJU_REMOTE_SERVICE=" + r.RemoteService,
	}

	if warning := r.TooManyMembers(); warning == "" {
		env = append(env, r.membersVariable())
	}
	if r.Departing != "" {
		env = append(env, "JUJU_DEPARTING_UNIT="+r.Departing)
	}
	return env
}

// membersVariable returns the variable JUJU_MEMBERS, as NAME=VALUE.
func (r *RelationFacts) membersVariable() string {
	return "JUJU_MEMBERS=" + strings.Join(r.Members, " ")
}

// TooManyMembers returns a warning if the relation has more members than JUJU_MEMBERS can hold. In that case
// the hook does not get the variable. Otherwise, or if r is nil, it returns an empty string.
func (r *RelationFacts) TooManyMembers() string {
	if r == nil || len(r.membersVariable()) < maxVariableSize {
		return ""
	}
	return fmt.Sprintf("JUJU_MEMBERS is not set: %d members are more than a variable can hold (%d KiB); use relation-list instead",
		len(r.Members), maxVariableSize>>10)
}

// inheritedVariables returns the variables that hooks inherit from the agent: PATH (with the hook tools in
// front), HOME, USER, the locale and the proxies. If the agent has no PATH or LANG, hooks get a default value.
func inheritedVariables(tools string, getenv func(string) string) []string {
	path := getenv("PATH")
	lang := getenv("LANG")
	env := []string{
		"PATH=" + tools + ":" + cmp.Or(path, defaultPath),
		"LANG=" + cmp.Or(lang, "C.UTF-8"),
	}

	for _, name := range []string{
		"HOME", "USER",
		"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
		"LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
		"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	} {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}

	return env
}
