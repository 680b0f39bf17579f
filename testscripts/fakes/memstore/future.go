package memstore

import (
	"bytes"
	"strings"

	"bijou/state/store"
)

// Future is the member that a newer binary has in each of its records, as far as KeepFuture knows.
const Future = `"x-future":{"since":["now"]}`

// KeepFuture has each record from now on be as a newer binary leaves it: with the member Future. A
// write without it, over a record that has it, is what drops it: lost is called with the key, and
// must not use the store. Keys under leases, and blobs, are left alone.
func KeepFuture(s store.Store, lost func(key string)) {
	d := s.(*handle).d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = lost
}

// addFuture puts the member also into the operations of the caller, who remembers what was written.
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
