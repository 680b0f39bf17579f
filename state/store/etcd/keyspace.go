package etcd

import (
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keyCodec maps the store's keys to etcd's. They are below the root as they are, so that
// etcdctl shows them:
//
//	ROOT + key               a key of the store
//	ROOT + \x01 + key        one that begins with \x00 or \x01
//	ROOT + \x00store         the marker that makes the prefix a store
//	ROOT + \x00gone/ + key   a tombstone: the key was deleted, or put under a lease
//	ROOT + \x00swept         the revision up to which tombstones may have been swept
//
// So they keep their order, and a range of them holds nothing else.
type keyCodec struct {
	root string // ends with a slash
}

// keyRange is half-open: from begin up to, but not with, end.
type keyRange struct{ begin, end string }

func (s keyCodec) markerKey() string { return s.root + "\x00store" }
func (s keyCodec) sweptKey() string  { return s.root + "\x00swept" }

func (s keyCodec) encodeKey(key string) string {
	if key != "" && key[0] <= 1 {
		return s.root + "\x01" + key
	}
	return s.root + key
}

func (s keyCodec) decodeKey(at []byte) string {
	key := string(at[len(s.root):])
	return strings.TrimPrefix(key[:1], "\x01") + key[1:]
}

func (s keyCodec) prefixRange(prefix string) keyRange {
	if prefix == "" {
		return keyRange{s.root + "\x01", clientv3.GetPrefixRangeEnd(s.root)}
	}
	return rangeOf(s.encodeKey(prefix))
}

func (s keyCodec) tombstoneKey(key string) string        { return s.root + "\x00gone/" + key }
func (s keyCodec) tombstoneRange(prefix string) keyRange { return rangeOf(s.tombstoneKey(prefix)) }
func (s keyCodec) storeRange() keyRange                  { return rangeOf(s.root) }

func rangeOf(prefix string) keyRange { return keyRange{prefix, clientv3.GetPrefixRangeEnd(prefix)} }

// sweptValue returns the revision as a value that compares as the number does.
func sweptValue(revision int64) string { return fmt.Sprintf("%016x", revision) }
