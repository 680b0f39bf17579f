package state

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/wrap"
)

// Trouble is a task at which an agent fails, and which it tries again.
type Trouble struct {
	Message   string    `json:"message" yaml:"message"`
	Since     time.Time `json:"since" yaml:"since"`
	Attempts  int       `json:"attempts" yaml:"attempts"`
	NextRetry time.Time `json:"next-retry" yaml:"next-retry"`
}

// AgentPresence is the value of an announced agent's key.
type AgentPresence struct {
	keyspace.Presence
	Trouble *Trouble `json:"trouble,omitempty"` // nil: none
}

// Announce records that an agent ("machine-0", "unit-wordpress-0") runs in this process, in the
// place of any other that said so. The update is that of the agent's claim, so that only its holder
// can. Announcing again is no error. ErrNotFound: the machine or unit is gone.
func Announce(ctx context.Context, s *Session, update Updater, agent string) error {
	err := update(ctx, func(tx *Tx) error { return tx.announce(s, agent) })
	return wrap.Error(err, "cannot announce agent %q", agent)
}

func (tx *Tx) announce(s *Session, agent string) error {
	if err := tx.checkAgentExists(agent); err != nil {
		return err
	}
	old, ok, err := keyspace.Load[AgentPresence](tx.keys, keys.Presence(agent))
	if err != nil || ok && s.Wrote(old.Presence) {
		return err
	}
	return tx.keys.PutLeased(keys.Presence(agent), s.NewPresence(""), s)
}

const announceBatch = 50

// AnnounceAll announces many agents, as after an outage, in batches. It passes
// over those whose machine or unit is gone.
func AnnounceAll(ctx context.Context, s *Session, update Updater, agents []string) error {
	err := inBatchesOf(ctx, announceBatch, update, agents, func(tx *Tx, agent string) error { return tx.announce(s, agent) })
	return wrap.Error(err, "cannot announce %d agents", len(agents))
}

// Report announces an agent as Announce does, with its trouble; nil: it has none (any
// more). An agent whose machine or unit is gone has nobody to tell: no error.
func Report(ctx context.Context, s *Session, update Updater, agent string, t *Trouble) error {
	if t != nil {
		t.Message = Truncate(t.Message, maxMessageBytes)
	}
	err := update(ctx, func(tx *Tx) error {
		if err := tx.checkAgentExists(agent); err != nil {
			return err
		}
		p, ok, err := keyspace.Load[AgentPresence](tx.keys, keys.Presence(agent))
		if err != nil || t == nil && (!ok || p.Trouble == nil) {
			return err
		}
		if !ok || !s.Wrote(p.Presence) {
			p = AgentPresence{Presence: s.NewPresence("")}
		}
		p.Trouble = t
		return tx.keys.PutLeased(keys.Presence(agent), p, s)
	})
	return wrap.Error(IgnoreNotFound(err), "cannot tell of agent %q", agent)
}

func (v *View) checkAgentExists(agent string) error { return checkAgent(agent, v.keys.Get) }

// checkAgentExisted is checkAgentExists before the transaction's own writes.
func (tx *Tx) checkAgentExisted(agent string) error { return checkAgent(agent, tx.keys.Stored) }

func checkAgent(agent string, get func(key string) (value []byte, ok bool, err error)) error {
	key, what := "", ""
	if id, isMachine := strings.CutPrefix(agent, "machine-"); isMachine {
		key, what = keys.Machine(id), "machine "+strconv.Quote(id)
	} else {
		unit, err := charm.ParseUnitTag(agent)
		if err != nil {
			return err
		}
		key, what = keys.Unit(unit), "unit "+strconv.Quote(unit)
	}
	_, ok, err := get(key)
	if err == nil && !ok {
		err = refuse(ErrNotFound, "%s not found", what)
	}
	return err
}

// Trouble reads the trouble of an agent that is announced; nil: it has none.
func (v *View) Trouble(agent string) (*Trouble, error) {
	p, _, err := keyspace.Load[AgentPresence](v.keys, keys.Presence(agent))
	return p.Trouble, err
}

// IsPresent reports whether an agent is announced by a session that lives.
func (v *View) IsPresent(agent string) (bool, error) {
	_, ok, err := v.keys.Get(keys.Presence(agent))
	return ok, err
}

// MachineAgent names the agent of a machine, as its presence does: "machine-0".
func MachineAgent(id string) string { return "machine-" + id }

// UnitAgent names the agent of a unit: "unit-wordpress-0". It panics on what is not a unit's name.
func UnitAgent(unit string) string { return charm.UnitTag(unit) }

// ServiceAgents returns what the names of the agents of a service's units begin with. Those
// of a service whose name goes on there ("a" and "a-b") may begin so, too.
func ServiceAgents(service string) string { return "unit-" + service + "-" }

// MaxTroubleMessages bounds the messages that are kept of one ProvisionerTrouble.
const MaxTroubleMessages = 20

// ProvisionerTrouble keeps the provisioner from its work, or is wrong with its
// provider's answers: it is the environment's, not one machine's.
type ProvisionerTrouble struct {
	Messages []string  `json:"messages" yaml:"messages"`
	Since    time.Time `json:"since" yaml:"since"` // when it became this

	NextRetry time.Time `json:"next-retry,omitzero" yaml:"next-retry,omitempty"` // zero: with the next look
}

// ProvisionerTrouble reads the provisioner's trouble; without messages there is none.
func (v *View) ProvisionerTrouble() (ProvisionerTrouble, error) {
	return keyspace.LoadOrZero[ProvisionerTrouble](v.keys, keys.Provisioner)
}

// SetProvisionerTrouble records the provisioner's trouble, since now unless it is
// recorded already, with the time of the next try; no messages: it is over.
func (tx *Tx) SetProvisionerTrouble(messages []string, now, next time.Time) error {
	messages = slices.Clone(messages[:min(len(messages), MaxTroubleMessages)])
	for i, m := range messages {
		messages[i] = Truncate(m, maxMessageBytes)
	}
	old, err := tx.ProvisionerTrouble()
	if same := slices.Equal(old.Messages, messages); same {
		now = old.Since
	}
	if err != nil || len(messages)+len(old.Messages) == 0 {
		return err
	}
	trouble := ProvisionerTrouble{Messages: messages, Since: now.UTC(), NextRetry: next.UTC()}
	return tx.keys.PutOrRemove(keys.Provisioner, trouble, len(messages) > 0)
}

// SessionTTL is how long a process may be silent before its agents count as gone, and
// its leaderships as free.
const SessionTTL = keyspace.SessionTTL

type (
	// Session is the proof that a process lives: the presence of all its agents and its
	// leaderships need it. One a process is enough. It shows others that agents live; what
	// these may write is a matter of their Claim.
	Session = keyspace.Session
	// SharedSession shares one session among all roles of a process.
	SharedSession = keyspace.SharedSession
	// Leadership is the right of one session in the environment to do something
	// alone, as long as the session lives.
	Leadership = keyspace.Leadership
)

// NewSharedSession begins no session yet. With announces, one of the roles announces agents,
// and campaigns wait for that.
func NewSharedSession(s *State, announces bool) *SharedSession {
	return keyspace.NewSharedSession(s.Space, announces)
}

// Campaign is Session.Campaign for what is led in the environment.
func Campaign(ctx context.Context, s *Session, what string) (*Leadership, error) {
	return s.Campaign(ctx, keys.Leader(what), "")
}

// CampaignFor blocks until this session leads a service, in the name of one of the units
// that run under it. One campaign a service and session is enough, however many units
// there are: SetLeaderUnit says which of them leads.
func CampaignFor(ctx context.Context, s *Session, service, unit string) (*Leadership, error) {
	return s.Campaign(ctx, keys.Leader(keys.ServiceLeaderName(service)), unit)
}

// Leader returns the unit that leads a service; empty if none does.
func (v *View) Leader(service string) (unit string, err error) {
	p, _, err := keyspace.Load[keyspace.Presence](v.keys, keys.Leader(keys.ServiceLeaderName(service)))
	return p.Unit, err
}

// CheckLeader makes the commit conditional on a unit leading its service. ErrNotLeader.
func (tx *Tx) CheckLeader(service, unit string) error {
	leader, err := tx.Leader(service)
	if err == nil && leader != unit {
		err = refuse(ErrNotLeader, "unit %q does not lead service %q", unit, service)
	}
	return err
}

// LeaderSettings reads the settings that a service's leader has for its peers; empty if
// there are none.
func (v *View) LeaderSettings(service string) (Settings, error) {
	s, _, err := v.readSettings(keys.LeaderSettings(service))
	return s, err
}

// LeaderSettingsVersion reads only the version of the leader settings; 0 if there are none.
func (v *View) LeaderSettingsVersion(service string) (int64, error) {
	doc, _, err := keyspace.Load[settingsDoc](v.keys, keys.LeaderSettings(service))
	return doc.Version, err
}

// MergeLeaderSettings changes single keys of the leader settings, as MergeSettings does,
// in the name of a unit. ErrNotLeader; ErrNotFound if the service is gone.
func (tx *Tx) MergeLeaderSettings(service, unit string, changes map[string]*string) ([]Change, error) {
	if err := tx.CheckLeader(service, unit); err != nil {
		return nil, err
	}
	if _, err := tx.Service(service); err != nil {
		return nil, fmt.Errorf("cannot change leader settings: %w", err)
	}
	return tx.mergeSettingsNode(keys.LeaderSettings(service), changes)
}
