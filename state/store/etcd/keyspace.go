package etcd

import (
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keyspace says where in etcd what lies. The store's keys are below the root as
// they are, so that etcdctl shows them:
//
//	ROOT + key               a key of the store
//	ROOT + \x01 + key        one that begins with \x00 or \x01
//	ROOT + \x00store         the marker that makes the place a store
//	ROOT + \x00gone/ + key   a mark: the key was deleted, or put under a lease
//	ROOT + \x00swept         up to which revision marks may have been swept away
//
// So they keep their order, and a range of them holds nothing else.
type keyspace struct {
	root string // ends with a slash
}

// keyRange is a range of keys in etcd: from begin up to, but not with, end.
type keyRange struct{ begin, end string }

func (s keyspace) markerKey() string { return s.root + "\x00store" }
func (s keyspace) sweptKey() string  { return s.root + "\x00swept" }

func (s keyspace) encodeKey(key string) string {
	if key != "" && key[0] <= 1 {
		return s.root + "\x01" + key
	}
	return s.root + key
}

// decodeKey is the store's key that lies at a key of etcd's.
func (s keyspace) decodeKey(at []byte) string {
	key := string(at[len(s.root):])
	return strings.TrimPrefix(key[:1], "\x01") + key[1:]
}

// prefixRange is all keys of the store with the prefix.
func (s keyspace) prefixRange(prefix string) keyRange {
	if prefix == "" {
		return keyRange{s.root + "\x01", clientv3.GetPrefixRangeEnd(s.root)}
	}
	return rangeOf(s.encodeKey(prefix))
}

func (s keyspace) tombstoneKey(key string) string        { return s.root + "\x00gone/" + key }
func (s keyspace) tombstoneRange(prefix string) keyRange { return rangeOf(s.tombstoneKey(prefix)) }
func (s keyspace) storeRange() keyRange                  { return rangeOf(s.root) }

func rangeOf(prefix string) keyRange { return keyRange{prefix, clientv3.GetPrefixRangeEnd(prefix)} }

// sweptValue is a revision as a value that compares as the number does.
func sweptValue(revision int64) string { return fmt.Sprintf("%016x", revision) }
