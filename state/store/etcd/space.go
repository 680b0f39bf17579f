package etcd

import (
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// space says where in etcd what lies. The store's keys are below the root as
// they are, so that etcdctl shows them:
//
//	ROOT + key               a key of the store
//	ROOT + \x01 + key        one that begins with \x00 or \x01
//	ROOT + \x00store         the marker that makes the place a store
//	ROOT + \x00gone/ + key   a mark: the key was deleted, or put under a lease
//	ROOT + \x00swept         up to which revision marks may have been swept away
//
// So they keep their order, and a range of them holds nothing else.
type space struct {
	root string // ends with a slash
}

// span is a range of keys in etcd: from begin up to, but not with, end.
type span struct{ begin, end string }

func (s space) marker() string { return s.root + "\x00store" }
func (s space) swept() string  { return s.root + "\x00swept" }

func (s space) key(key string) string {
	if key != "" && key[0] <= 1 {
		return s.root + "\x01" + key
	}
	return s.root + key
}

// name is the store's key that lies at a key of etcd's.
func (s space) name(at []byte) string {
	key := string(at[len(s.root):])
	return strings.TrimPrefix(key[:1], "\x01") + key[1:]
}

// below is all keys of the store with the prefix.
func (s space) below(prefix string) span {
	if prefix == "" {
		return span{s.root + "\x01", clientv3.GetPrefixRangeEnd(s.root)}
	}
	return spanOf(s.key(prefix))
}

func (s space) mark(key string) string        { return s.root + "\x00gone/" + key }
func (s space) marksBelow(prefix string) span { return spanOf(s.mark(prefix)) }
func (s space) all() span                     { return spanOf(s.root) }

func spanOf(prefix string) span { return span{prefix, clientv3.GetPrefixRangeEnd(prefix)} }

// sweptValue is a revision as a value that compares as the number does.
func sweptValue(revision int64) string { return fmt.Sprintf("%016x", revision) }
