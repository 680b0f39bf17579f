package state

import (
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// ProvisionerTrouble describes errors that keep the provisioner from its work, or errors in the provider's
// answers. They concern the environment, not a single machine.
type ProvisionerTrouble struct {
	Messages []string  `json:"messages" yaml:"messages"`
	Since    time.Time `json:"since" yaml:"since"` // when the messages last changed

	// NextRetry is the time of the next try. Zero means the provisioner's next regular run.
	NextRetry time.Time `json:"next-retry,omitzero" yaml:"next-retry,omitempty"`
}

// ProvisionerTrouble reads the provisioner's trouble. It has no messages if there is no trouble.
func (v *View) ProvisionerTrouble() (ProvisionerTrouble, error) {
	return keyspace.LoadOrZero[ProvisionerTrouble](v.keys, keys.Provisioner)
}

// SetProvisionerTrouble records the provisioner's trouble with the time of the next try. It keeps only the first
// MaxTroubleMessages messages, each with at most maxMessageBytes. Since stays the same if the messages have not
// changed. If messages is empty, the trouble is over, and the record is removed.
func (tx *Tx) SetProvisionerTrouble(messages []string, now, next time.Time) error {
	messages = slices.Clone(messages[:min(len(messages), MaxTroubleMessages)])
	for i, m := range messages {
		messages[i] = Truncate(m, maxMessageBytes)
	}

	old, err := tx.ProvisionerTrouble()
	if err != nil {
		return err
	}
	if len(messages) == 0 && len(old.Messages) == 0 {
		return nil
	}

	since := now
	if slices.Equal(old.Messages, messages) {
		since = old.Since
	}
	trouble := ProvisionerTrouble{Messages: messages, Since: since.UTC(), NextRetry: next.UTC()}
	return tx.keys.PutOrRemove(keys.Provisioner, trouble, len(messages) > 0)
}
