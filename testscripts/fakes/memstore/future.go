package memstore

import (
	"bytes"
	"strings"

	"bijou/state/store"
)

// Future is the member that a newer binary has in each of its records.
const Future = `"x-future":{"since":["now"]}`

// After KeepFuture, each record gets the member Future when it is written, as a newer binary would add it.
// The store then calls lost with the key of each write that drops the member from a record that has it. lost
// must not use the store. Keys under leases, and blobs, stay unchanged.
func KeepFuture(s store.Store, lost func(key string)) {
	d := s.(*handle).d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = lost
}

// addFuture also adds the member to the caller's operations, since the caller remembers what was
// written.
func (d *data) addFuture(ops []store.Op) {
	if d.lost == nil {
		return
	}
	for i, o := range ops {
		isBlob := strings.HasPrefix(o.Key, "blob-heads/") || strings.HasPrefix(o.Key, "blobs/")
		if o.Delete || o.Lease != 0 || isBlob || !bytes.HasPrefix(o.Value, []byte("{")) || bytes.Contains(o.Value, []byte(Future)) {
			continue
		}
		if before, there := d.versionAt(o.Key, d.revision); there && bytes.Contains(before.value, []byte(Future)) {
			d.lost(o.Key)
		}
		ops[i].Value = withFuture(o.Value)
	}
}

func withFuture(object []byte) []byte {
	known := bytes.TrimPrefix(object, []byte("{"))
	if bytes.Equal(known, []byte("}")) {
		return []byte("{" + Future + "}")
	}
	return append([]byte("{"+Future+","), known...)
}
