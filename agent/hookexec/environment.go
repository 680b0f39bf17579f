package hookexec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Facts determine a hook's environment.
type Facts struct {
	Unit      string // "myblog/0"
	Service   string
	Charm     string // the name
	Hook      string
	Machine   string
	Principal string // of a subordinate, else empty

	UnitDir  string
	CharmDir string
	Tools    string // the unit's tools folder
	Socket   string
	ClientID string

	Environment string // the name
	UUID        string // of the environment
	Version     string // the version of Juju that the hook sees
	Proxies     Proxies

	Relation *RelationFacts // nil outside relation hooks
	Action   *ActionFacts   // nil in hooks
	Secret   *SecretFacts   // nil in hooks that are about no secret
	Storage  *StorageFacts  // nil in hooks that are about no storage
}

// Proxies are what the environment tells charms of proxies; empty is none.
type Proxies struct{ HTTP, HTTPS, FTP, None string }

// StorageFacts are for hooks about a storage only.
type StorageFacts struct {
	ID       string // "data/0"
	Location string // where it is
}

// SecretFacts are for hooks about a secret only.
type SecretFacts struct {
	ID       string // its URI
	Label    string // the unit's for it
	Revision int    // the one that the hook is about; 0: the newest
}

// ActionFacts describe an action or a command.
type ActionFacts struct {
	Name string // the charm's action; empty for a command
	ID   string
}

// RelationFacts are for relation hooks only.
type RelationFacts struct {
	Name          string // as the local charm calls it
	ID            string // in the charm's dialect
	RemoteUnit    string
	RemoteService string
	Members       []string
	Departing     string // empty but in -departed
}

// maxVariableSize bounds one NAME=VALUE with its terminating zero, in bytes: Linux starts
// no process with a longer one.
const maxVariableSize = 128 << 10

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment returns the whole environment of a hook. Of the agent's own, read with
// getenv, it takes only PATH's tail, HOME, USER, locale and proxies.
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
		"JUJU_PRINCIPAL_UNIT="+f.Principal, // there, and empty: how libraries know a principal
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

// hookVariables returns the variables that name the hook, or the action.
func (f Facts) hookVariables() []string {
	switch {
	case f.Action == nil:
		return []string{"JUJU_HOOK_NAME=" + f.Hook, "JUJU_DISPATCH_PATH=hooks/" + f.Hook}
	case f.Action.Name == "":
		return []string{"JUJU_HOOK_NAME="}
	}

	return []string{
		"JUJU_HOOK_NAME=", // there, and empty: what libraries know an action by
		"JUJU_ACTION_NAME=" + f.Action.Name,
		"JUJU_ACTION_UUID=" + f.Action.ID,
		"JUJU_ACTION_TAG=action-" + f.Action.ID,
		"JUJU_DISPATCH_PATH=actions/" + f.Action.Name,
	}
}

// variables returns the variables that describe the hook's relation.
func (r *RelationFacts) variables() []string {
	env := []string{
		"JUJU_RELATION=" + r.Name,
		"JUJU_RELATION_ID=" + r.ID,
		"JUJU_REMOTE_UNIT=" + r.RemoteUnit,
		"JUJU_REMOTE_APP=" + r.RemoteService,
		"JUJU_REMOTE_SERVICE=" + r.RemoteService,
	}

	if r.TooManyMembers() == "" {
		env = append(env, r.membersVariable())
	}
	if r.Departing != "" {
		env = append(env, "JUJU_DEPARTING_UNIT="+r.Departing)
	}
	return env
}

func (r *RelationFacts) membersVariable() string {
	return "JUJU_MEMBERS=" + strings.Join(r.Members, " ")
}

// TooManyMembers returns why the hook gets no JUJU_MEMBERS; "" if it does, or if r is nil.
func (r *RelationFacts) TooManyMembers() string {
	if r == nil || len(r.membersVariable()) < maxVariableSize {
		return ""
	}
	return fmt.Sprintf("JUJU_MEMBERS is left out: %d members are more than a variable can hold (%d KiB); relation-list has them all",
		len(r.Members), maxVariableSize>>10)
}

// inheritedVariables returns the variables of the agent that hooks get too: locale, home and proxies. PATH
// begins with the hook tools.
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
