package copying

import (
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

func isClaimKey(key string) bool { return strings.HasPrefix(key, keys.Claims) }

// raiseClaims returns a claim for each machine that nobody holds, with an epoch above
// all that agents may have: those of the backup, those that are there, and, for nobody
// knows what was claimed since where the store is lost, one a second.
func raiseClaims(backup, there []keyspace.KeyValue) ([]keyspace.KeyValue, error) {
	epochs := map[string]int64{}
	for _, kv := range append(backup[:len(backup):len(backup)], there...) {
		id, ok := strings.CutPrefix(kv.Key, keys.Machines)
		switch {
		case ok && !strings.Contains(id, "/"):
			key := keys.Claim(state.MachineAgent(id))
			epochs[key] = max(epochs[key], time.Now().Unix())
		case isClaimKey(kv.Key):
			c, err := keyspace.Decode[keyspace.ClaimRecord](kv)
			if err != nil {
				return nil, err
			}
			epochs[kv.Key] = max(epochs[kv.Key], c.Epoch, time.Now().Unix())
		}
	}
	return encodeAll(epochs, func(n int64) any { return keyspace.ClaimRecord{Epoch: n + 1} })
}

func isCounterKey(key string) bool { return strings.HasPrefix(key, keys.Counters) }

// skippedIDs are passed over where nobody knows how many ids were given since the backup
// was made: none is ever given twice.
const skippedIDs = 100

func raiseCounters(backup, there []keyspace.KeyValue) ([]keyspace.KeyValue, error) {
	next := map[string]int{}
	for i, kvs := range [][]keyspace.KeyValue{backup, there} {
		for _, kv := range kvs {
			if !isCounterKey(kv.Key) {
				continue
			}
			n, err := keyspace.Decode[int](kv)
			if err != nil {
				return nil, err
			}
			if _, known := findKey(there, kv.Key); i == 0 && !known {
				n += skippedIDs
			}
			next[kv.Key] = max(next[kv.Key], n)
		}
	}
	return encodeAll(next, func(n int) any { return n })
}

func encodeAll[T any](docs map[string]T, doc func(T) any) (all []keyspace.KeyValue, err error) {
	for key, d := range docs {
		kv := keyspace.KeyValue{Key: key}
		if kv.Value, err = keyspace.Encode(key, doc(d)); err != nil {
			return nil, err
		}
		all = append(all, kv)
	}
	return all, nil
}
