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

// Trouble is a task that keeps failing, and that its agent retries.
type Trouble struct {
	Message   string    `json:"message" yaml:"message"`
	Since     time.Time `json:"since" yaml:"since"`
	Attempts  int       `json:"attempts" yaml:"attempts"`
	NextRetry time.Time `json:"next-retry" yaml:"next-retry"`
}

// AgentPresence is the record of a present agent.
type AgentPresence struct {
	keyspace.Presence
	Trouble *Trouble `json:"trouble,omitempty"` // nil if the agent has no trouble
}

// Announce records that an agent ("machine-0", "unit-wordpress-0") runs in this process. It replaces the
// announcement of any other process, and can be repeated. update must commit under the agent's claim, so that
// only the claim's holder can announce the agent. It returns ErrNotFound if the machine or unit is gone.
func Announce(ctx context.Context, s *Session, update Updater, agent string) error {
	err := update(ctx, func(tx *Tx) error { return tx.announce(s, agent) })
	if err != nil {
		return fmt.Errorf("cannot announce agent %q: %w", agent, err)
	}

	return nil
}

// announce writes the agent's presence for the session s. It writes nothing if s has already announced the
// agent. It returns ErrNotFound if the agent's machine or unit does not exist.
func (tx *Tx) announce(s *Session, agent string) error {
	if err := tx.checkAgentExists(agent); err != nil {
		return err
	}

	old, isPresent, err := keyspace.Load[AgentPresence](tx.keys, keys.Presence(agent))
	if err != nil {
		return err
	}
	if isPresent && s.Wrote(old.Presence) {
		return nil
	}

	return tx.keys.PutLeased(keys.Presence(agent), s.NewPresence(leadsNoUnit), s)
}

// leadsNoUnit is the unit in an agent's presence. Only the presence of a leader can name a unit.
const leadsNoUnit = ""

// announceBatch is how many agents AnnounceAll announces in one transaction.
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

// Report announces an agent as [Announce] does, together with its trouble. It shortens the message in t if the
// message is too long. If t is nil, Report clears earlier trouble, and writes nothing if there is none. It
// returns no error if the agent's machine or unit is gone.
func Report(ctx context.Context, s *Session, update Updater, agent string, t *Trouble) error {
	if t != nil {
		t.Message = Truncate(t.Message, maxMessageBytes)
	}

	err := update(ctx, func(tx *Tx) error {
		if err := tx.checkAgentExists(agent); err != nil {
			return err
		}

		p, isPresent, err := keyspace.Load[AgentPresence](tx.keys, keys.Presence(agent))
		if err != nil {
			return err
		}
		hasTrouble := isPresent && p.Trouble != nil
		if t == nil && !hasTrouble {
			return nil
		}

		// Keep the time of this session's own announcement. Replace that of an earlier session.
		if !isPresent || !s.Wrote(p.Presence) {
			p = AgentPresence{Presence: s.NewPresence(leadsNoUnit)}
		}
		p.Trouble = t
		return tx.keys.PutLeased(keys.Presence(agent), p, s)
	})

	if err := IgnoreNotFound(err); err != nil {
		return fmt.Errorf("cannot record the trouble of agent %q: %w", agent, err)
	}

	return nil
}

// checkAgentExists returns ErrNotFound if the agent's machine or unit does not exist.
func (v *View) checkAgentExists(agent string) error { return checkAgent(agent, v.keys.Get) }

// checkAgentExisted does the same as checkAgentExists, but ignores the transaction's own writes.
func (tx *Tx) checkAgentExisted(agent string) error { return checkAgent(agent, tx.keys.Stored) }

// checkAgent returns ErrNotFound if the agent's machine or unit does not exist. It reads the record with get.
func checkAgent(agent string, get func(key string) (value []byte, ok bool, err error)) error {
	var key, entity string
	if id, isMachine := strings.CutPrefix(agent, "machine-"); isMachine {
		key = keys.Machine(id)
		entity = "machine " + strconv.Quote(id)
	} else {
		unit, err := charm.ParseUnitTag(agent)
		if err != nil {
			return err
		}
		key = keys.Unit(unit)
		entity = "unit " + strconv.Quote(unit)
	}

	_, exists, err := get(key)
	if err != nil {
		return err
	}
	if !exists {
		return refuse(ErrNotFound, "%s not found", entity)
	}

	return nil
}

// Trouble reads the trouble of an agent. It returns nil if the agent has no trouble, or is not present.
func (v *View) Trouble(agent string) (*Trouble, error) {
	p, _, err := keyspace.Load[AgentPresence](v.keys, keys.Presence(agent))
	return p.Trouble, err
}

// IsPresent reports whether a live session has announced the agent.
func (v *View) IsPresent(agent string) (bool, error) {
	_, ok, err := v.keys.Get(keys.Presence(agent))
	return ok, err
}

// MachineAgent returns the name of a machine's agent, as in "machine-0".
func MachineAgent(id string) string { return "machine-" + id }

// UnitAgent returns the name of a unit's agent, as in "unit-wordpress-0". It panics if unit is not a unit's
// name.
func UnitAgent(unit string) string { return charm.UnitTag(unit) }

// ServiceAgents returns the prefix of the names of a service's unit agents. Agents of other services may have
// the same prefix: the names of the service "a-b" also begin with the prefix of "a".
func ServiceAgents(service string) string { return "unit-" + service + "-" }

// MaxTroubleMessages limits the recorded messages of one ProvisionerTrouble.
const MaxTroubleMessages = 20
