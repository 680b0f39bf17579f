package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Replacement is of a member that is dead for good, by another one in its place.
type Replacement struct {
	Name   string // the dead member's; "": the one whose clients call at Client
	Client string // HOST:PORT
	Peer   string // the URL at which the new one meets the others; "": the dead one's
}

const replaceTimeout = 30 * time.Second

// ReplaceMember takes the dead member out of the cluster at the URL and the new one in,
// and returns what that has to be started with as its initial cluster. A member that
// answers is not taken out, and nothing is done unless enough of the others are healthy
// for the cluster to be served while the new one is not there yet. Repeated after it was
// cut short, it goes on where it was, if Peer is given.
func ReplaceMember(ctx context.Context, url string, r Replacement) (initialCluster string, err error) {
	p, err := parseURL(url)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, replaceTimeout)
	defer cancel()
	d, err := connect(ctx, p)
	if err != nil {
		return "", err
	}
	defer d.Close()
	list, err := d.client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot list etcd's members: too few of them may live; nothing was changed: %w", d.explain(ctx, err))
	}
	members := list.Members
	if joins := slices.IndexFunc(members, func(m *etcdserverpb.Member) bool { return m.Name == "" && slices.Contains(m.PeerURLs, r.Peer) }); joins >= 0 {
		return r.initialCluster(members, members[joins].ID), nil
	}
	answers := d.answering(ctx, members)
	dead := slices.IndexFunc(members, r.is)
	switch {
	case dead < 0 && r.Peer == "":
		return "", fmt.Errorf("etcd has no member %s; it has %s. If it was taken out already, give --peer URL, at which the new one meets the others", r, names(members))
	case dead >= 0 && answers[members[dead].ID]:
		return "", fmt.Errorf("etcd's member %s lives: it answers; nothing was changed", members[dead].Name)
	}
	total := len(members)
	if dead < 0 {
		total++
	}
	if need := total/2 + 1; len(answers) < need {
		return "", fmt.Errorf("%d of etcd's %d members must be healthy, and %d are; nothing was changed: bring another one back first", need, total, len(answers))
	}
	return d.replace(ctx, r, members, dead)
}

// replace does it; dead is negative if the member is out already.
func (d *db) replace(ctx context.Context, r Replacement, members []*etcdserverpb.Member, dead int) (string, error) {
	peers := []string{r.Peer}
	if dead >= 0 {
		m := members[dead]
		if r.Name = m.Name; r.Peer == "" {
			peers = m.PeerURLs
		}
		err := onceHealthy(ctx, func() error { _, err := d.client.MemberRemove(ctx, m.ID); return err })
		if err != nil {
			return "", fmt.Errorf("cannot take etcd's member %s out: %w", m.Name, err)
		}
	}
	var added *clientv3.MemberAddResponse
	err := onceHealthy(ctx, func() (err error) { added, err = d.client.MemberAdd(ctx, peers); return err })
	if err != nil {
		return "", fmt.Errorf("etcd's member %s is out, but the new one is not in; repeat it with --peer %s: %w", r, strings.Join(peers, ","), err)
	}
	return r.initialCluster(added.Members, added.Member.ID), nil
}

// onceHealthy repeats f while etcd refuses it because members have not seen one another
// for long enough, which is some seconds.
func onceHealthy(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return err
		}
		select {
		case <-time.After(hedgeDelay):
		case <-ctx.Done():
			return err
		}
	}
}

// answering asks all members, at the places that this store is given and at their own,
// and returns which of them are healthy.
func (d *db) answering(ctx context.Context, members []*etcdserverpb.Member) map[uint64]bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	places := slices.Clone(d.place.endpoints)
	for _, m := range members {
		places = append(places, m.ClientURLs...)
	}
	slices.Sort(places)
	var asking sync.WaitGroup
	var mu sync.Mutex
	healthy := map[uint64]bool{}
	for _, endpoint := range slices.Compact(places) {
		asking.Go(func() {
			s, err := d.client.Status(ctx, endpoint)
			member := func(m *etcdserverpb.Member) bool { return m.ID == s.Header.MemberId }
			if err != nil || s.Leader == 0 || s.IsLearner || !slices.ContainsFunc(members, member) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			healthy[s.Header.MemberId] = true
		})
	}
	asking.Wait()
	return healthy
}

// is reports whether it is about that member.
func (r Replacement) is(m *etcdserverpb.Member) bool {
	if r.Name != "" {
		return m.Name == r.Name || strconv.FormatUint(m.ID, 16) == r.Name
	}
	return slices.ContainsFunc(m.ClientURLs, func(client string) bool {
		u, err := url.Parse(client)
		return err == nil && u.Host == r.Client
	})
}

func (r Replacement) String() string {
	if r.Name != "" {
		return r.Name
	}
	return "at " + r.Client
}

// initialCluster names all members as a new one wants to be told; the new one itself by
// the dead one's name.
func (r Replacement) initialCluster(members []*etcdserverpb.Member, joins uint64) string {
	var all []string
	for _, m := range members {
		name := m.Name
		if m.ID == joins {
			name = r.Name
		}
		for _, peer := range m.PeerURLs {
			if name != "" {
				all = append(all, name+"="+peer)
			}
		}
	}
	return strings.Join(all, ",")
}

func names(members []*etcdserverpb.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, cmp.Or(m.Name, "one that has not started yet"))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
