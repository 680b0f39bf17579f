package state

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
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
	if err != nil {
		return fmt.Errorf("cannot announce agent %q: %w", agent, err)
	}

	return nil
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

// AnnounceAll announces many agents in batches. It skips agents whose machine or unit is gone.
func AnnounceAll(ctx context.Context, s *Session, update Updater, agents []string) error {
	err := inBatchesOf(ctx, announceBatch, update, agents, func(tx *Tx, agent string) error {
		return tx.announce(s, agent)
	})
	if err != nil {
		return fmt.Errorf("cannot announce %d agents: %w", len(agents), err)
	}

	return nil
}

// Report announces an agent as [Announce] does, together with its trouble; a nil t clears earlier trouble.
// It returns no error if the agent's machine or unit is gone.
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

	if err := IgnoreNotFound(err); err != nil {
		return fmt.Errorf("cannot find out if agent %q lives: %w", agent, err)
	}

	return nil
}

func (v *View) checkAgentExists(agent string) error { return checkAgent(agent, v.keys.Get) }

// checkAgentExisted is checkAgentExists before the transaction's own writes.
func (tx *Tx) checkAgentExisted(agent string) error { return checkAgent(agent, tx.keys.Stored) }

// checkAgent returns an error unless the agent's machine or unit exists.
func checkAgent(agent string, get func(key string) (value []byte, ok bool, err error)) error {
	key, what := "", ""
	if id, isMachine := strings.CutPrefix(agent, "machine-"); isMachine {
		key = keys.Machine(id)
		what = "machine " + strconv.Quote(id)
	} else {
		unit, err := charm.ParseUnitTag(agent)
		if err != nil {
			return err
		}
		key = keys.Unit(unit)
		what = "unit " + strconv.Quote(unit)
	}

	_, ok, err := get(key)
	if err != nil {
		return err
	}
	if !ok {
		return refuse(ErrNotFound, "%s not found", what)
	}

	return nil
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

// UnitAgent returns the name of a unit's agent, as in "unit-wordpress-0". It panics if the text is no
// unit's name.
func UnitAgent(unit string) string { return charm.UnitTag(unit) }

// ServiceAgents returns the prefix of the names of a service's unit agents. Agents of a different service
// can have it too: those of "a-b" begin like those of "a".
func ServiceAgents(service string) string { return "unit-" + service + "-" }

// MaxTroubleMessages bounds the messages that are kept of one ProvisionerTrouble.
const MaxTroubleMessages = 20
