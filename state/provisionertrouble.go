package state

import (
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

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
	t, _, err := keyspace.Load[ProvisionerTrouble](v.keys, keys.Provisioner)
	return t, err
}

// SetProvisionerTrouble records the provisioner's trouble, since now unless it is
// recorded already, with the time of the next try; no messages: it is over.
func (tx *Tx) SetProvisionerTrouble(messages []string, now, next time.Time) error {
	messages = slices.Clone(messages[:min(len(messages), MaxTroubleMessages)])
	for i, m := range messages {
		messages[i] = truncate(m, maxMessageBytes)
	}
	old, err := tx.ProvisionerTrouble()
	if same := slices.Equal(old.Messages, messages); same {
		now = old.Since
	}
	switch {
	case err != nil || len(messages)+len(old.Messages) == 0:
		return err
	case len(messages) == 0:
		tx.keys.Remove(keys.Provisioner)
		return nil
	}
	return tx.keys.Put(keys.Provisioner, ProvisionerTrouble{Messages: messages, Since: now.UTC(), NextRetry: next.UTC()})
}
