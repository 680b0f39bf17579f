package state

import (
	"context"
	"fmt"
	"strings"

	"bijou/state/store/etcd"
)

// EtcdReplacement is of a member of etcd that is dead for good, by another one.
type EtcdReplacement = etcd.Replacement

// ReplaceEtcdMember takes the dead member out of the etcd at the URL, whatever is stored
// there, and the new one in, never below its quorum. It returns what the new one is
// started with as its initial cluster.
func ReplaceEtcdMember(ctx context.Context, url string, r EtcdReplacement) (initialCluster string, err error) {
	url, _ = place(url)
	if !strings.HasPrefix(url, "etcd") {
		return "", fmt.Errorf("%q is no etcd: it has no members", url)
	}
	return etcd.ReplaceMember(ctx, url, r)
}
