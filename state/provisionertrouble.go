package state

import (
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

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
