package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// ReplaceMember replaces a dead member of the cluster at the URL with a new member. member is the dead
// member's name, or HOST:PORT of its client URL. peer is the new member's peer URL. If peer is empty, the new
// member gets the peer URLs of the dead member. ReplaceMember returns the initial cluster with which the new
// member must be started.
//
// Before it removes the dead member, it checks which members are healthy. A healthy member answers, has a leader
// and votes. ReplaceMember changes nothing and returns an error if the dead member is healthy, or if fewer than a
// majority of the members are.
//
// If ReplaceMember was interrupted, it must be called again with the dead member's name and the new member's peer
// URL. Given a peer URL and a name that no member has, ReplaceMember takes the dead member as already removed, and
// only adds the new one.
func ReplaceMember(ctx context.Context, url, member, peer string) (initialCluster string, err error) {
	p, err := parseURL(url)
	if err != nil {
		return "", err
	}

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := connect(ctx, p)
	if err != nil {
		return "", err
	}
	defer d.Close()

	// MemberList needs a quorum.
	list, err := d.client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("nothing was changed: %w", d.storeError(ctx, err))
	}

	peers := []string{peer}
	dead := findMember(list.Members, member)
	switch {
	case dead != nil:
		// member can be an address, but formatCluster needs the name. The new member takes it over.
		member = dead.Name
		if peer == "" {
			peers = dead.PeerURLs
		}
		if err := d.removeMember(ctx, list.Members, dead); err != nil {
			return "", err
		}
	case peer == "":
		return "", fmt.Errorf(
			"etcd has no member %s; if it has already been removed, give the new member's peer URL: --peer URL",
			member,
		)
	case strings.Contains(member, ":"):
		return "", fmt.Errorf("etcd has no member %s; if it has already been removed, give its name instead of its address",
			member)
	}

	members, err := d.addMember(ctx, list.Members, peers)
	if err != nil {
		return "", fmt.Errorf(
			"etcd no longer has member %s, but the new one was not added; repeat with --peer %s: %w",
			member, strings.Join(peers, ","), err,
		)
	}

	return formatCluster(members, member), nil
}

// findMember returns the member with this name, or with this HOST:PORT in a client URL. It returns nil if
// there is no such member.
func findMember(members []*etcdserverpb.Member, name string) *etcdserverpb.Member {
	for _, m := range members {
		hasAddress := func(url string) bool { return strings.HasSuffix(url, "://"+name) }
		if m.Name == name || slices.ContainsFunc(m.ClientURLs, hasAddress) {
			return m
		}
	}

	return nil
}

// addMember adds a member with these peer URLs, unless an earlier call has added it. members is the list of
// the members before the call. addMember returns the list that includes the new member. It retries, since
// etcd accepts a new member only after the other members have been connected for some seconds.
func (d *db) addMember(
	ctx context.Context,
	members []*etcdserverpb.Member,
	peers []string,
) (newMembers []*etcdserverpb.Member, _ error) {
	// A member that was added but has never run does not have a name.
	isNewMember := func(m *etcdserverpb.Member) bool { return m.Name == "" && slices.Equal(m.PeerURLs, peers) }
	if slices.ContainsFunc(members, isNewMember) {
		return members, nil
	}

	err := d.retry(ctx, func(ctx context.Context) error {
		added, err := d.client.MemberAdd(ctx, peers)
		if err != nil {
			return err
		}

		newMembers = added.Members
		return nil
	})
	return newMembers, err
}

// formatCluster returns the members as a value for etcd's option --initial-cluster. A member that has never
// run does not have a name yet. formatCluster uses newName for it.
func formatCluster(members []*etcdserverpb.Member, newName string) string {
	var entries []string // NAME=PEER-URL
	for _, m := range members {
		for _, peer := range m.PeerURLs {
			entries = append(entries, cmp.Or(m.Name, newName)+"="+peer)
		}
	}

	return strings.Join(entries, ",")
}

// removeMember removes the dead member from the cluster. It returns an error and changes nothing if that member
// is healthy, or if fewer than a majority of all members are. To find the healthy members, it queries the
// endpoints in the store's URL and the client URLs of all members.
func (d *db) removeMember(ctx context.Context, members []*etcdserverpb.Member, dead *etcdserverpb.Member) error {
	endpoints := slices.Clone(d.config.endpoints)
	for _, m := range members {
		endpoints = append(endpoints, m.ClientURLs...)
	}

	// A member that is cut off from the others has no leader. A learner does not vote.
	healthy := map[uint64]bool{} // by the member's id; several endpoints can lead to one member
	statuses, errs := d.queryStatus(ctx, endpoints)
	for i, s := range statuses {
		if errs[i] == nil && s.Leader != 0 && !s.IsLearner {
			healthy[s.Header.MemberId] = true
		}
	}

	if healthy[dead.ID] {
		return fmt.Errorf("cannot replace etcd member %s: it still answers", dead.Name)
	}
	if need := len(members)/2 + 1; len(healthy) < need {
		return fmt.Errorf(
			"%d of etcd's %d members must be healthy, but only %d are; nothing was changed: repair another member first",
			need, len(members), len(healthy),
		)
	}

	_, err := d.client.MemberRemove(ctx, dead.ID)
	return d.storeError(ctx, err)
}
