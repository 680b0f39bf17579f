package neco

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type bootserverReplaceCmd struct {
	LRN    string `arg:"" name:"lrn" help:"The logical rack number of the dead server, which the new server also has."`
	Member string `placeholder:"NAME" help:"Replace this member of the store's own etcd; default: the dead server's member of each component that is an etcd in the plan."`
	Peer   string `placeholder:"URL" help:"Use this peer URL for the new member; default: that of the dead member."`
	reasonFlag
}

// Run replaces the server's members of etcd, and prints how to start the new members. It then removes the records of
// the dead server, and keeps or adds its registration. It returns an error if the server or its member of etcd is
// still running, if too few other members are running, or if a running update waits for the server.
func (c bootserverReplaceCmd) Run(o *operator) error {
	lrn, err := record.ParseLRN(c.LRN)
	if err != nil {
		return console.Usage(err)
	}

	o.setDetail("%d", lrn)
	s, err := o.loadSnapshot()
	if err != nil {
		return err
	}
	// Check before the members are replaced, which cannot be undone.
	if err := checkReplaceable(s, lrn); err != nil {
		return err
	}

	members, err := c.findMembers(o, s.Servers, lrn)
	if err != nil {
		return err
	}

	if err := c.replaceMembers(o, members); err != nil {
		return err
	}
	o.note("once the worker of the new server is running: neco recover if an update is stopped, otherwise neco repair")

	return o.commitChanges(func(s decide.Snapshot, _ time.Time) ([]updater.Change, error) {
		// The state may have changed since the first check.
		if err := checkReplaceable(s, lrn); err != nil {
			return nil, err
		}

		// Remove all records of the dead server, but keep its registration for the new one.
		registration := keys.BootServer(lrn)
		changes := slices.DeleteFunc(decide.Unregister(s, lrn), func(c updater.Change) bool {
			return c.Key == registration
		})
		return append(changes, updater.Change{Key: registration, Value: struct{}{}}), nil
	})
}

// replaceMembers replaces the dead members, and prints the flags with which to start each new member. members has
// the name or address of each dead member, by the URL of its cluster. If the flags of a member cannot be printed,
// replaceMembers still replaces all further members.
func (c bootserverReplaceCmd) replaceMembers(o *operator, members map[string]string) error {
	var printErr error
	for _, url := range slices.Sorted(maps.Keys(members)) {
		initialCluster, err := keyspace.ReplaceEtcdMember(o.ctx, url, keys.DefaultPrefix, members[url], c.Peer)
		if err != nil {
			return err
		}

		o.note("start the new member with these flags, with the name of the dead member and an empty data directory")
		err = o.print("--initial-cluster=" + initialCluster + " --initial-cluster-state=existing\n")
		if err != nil {
			printErr = err
		}
	}

	return printErr
}

// checkReplaceable returns an error if the server's worker is running, or if a running update waits for the
// server.
func checkReplaceable(s decide.Snapshot, lrn int) error {
	if _, alive := s.Present[lrn]; alive {
		return fmt.Errorf("cannot replace server %d: its worker is running", lrn)
	}
	if r := s.Current; r != nil && !r.Ended() && slices.Contains(r.Servers, lrn) {
		return console.Hint(fmt.Errorf("cannot replace server %d: the running update waits for it", lrn),
			"run neco stop, then this command, then neco recover")
	}

	return nil
}

// findMembers returns the name or address of the server's members of etcd clusters, by the URLs of the clusters.
// Without --member, it takes the etcd components of this program's plan, and returns an error if there are none. Their
// URLs have only the remaining servers.
func (c bootserverReplaceCmd) findMembers(o *operator, servers []int, lrn int) (map[string]string, error) {
	if c.Member != "" {
		// --member names a member of the cluster in which neco keeps its own keys.
		return map[string]string{o.url: c.Member}, nil
	}

	members := map[string]string{}
	for _, component := range o.parts.Manifest.Components {
		if component.Etcd == "" {
			continue
		}

		host, options, _ := strings.Cut(strings.TrimPrefix(component.Etcd, "etcd://"), "?")
		hostOf := func(lrn int) string { return strings.ReplaceAll(host, "{lrn}", strconv.Itoa(lrn)) }
		var remaining []string
		for _, server := range servers {
			if server != lrn {
				remaining = append(remaining, hostOf(server))
			}
		}
		members["etcd://"+strings.Join(remaining, ",")+"?"+options] = hostOf(lrn)
	}

	if len(members) == 0 {
		return nil, console.Hint(errors.New("cannot find the server's etcd member: no component of this plan sets \"etcd\""),
			"for the store's own etcd: --member NAME; for a component, set in its manifest: etcd: \"etcd://10.0.{lrn}.3:2379\"")
	}

	return members, nil
}
