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
	LRN    string `arg:"" name:"lrn" help:"Logical rack number of the dead server, and of the new one."`
	Member string `placeholder:"NAME" help:"The dead server's member of the store's own etcd; default: its member of each component that the plan says is an etcd."`
	Peer   string `placeholder:"URL" help:"Where the new member meets the others; default: where the dead one did."`
	reasonFlag
}

// Run replaces the server, unless it or its member lives, or too few of the others do.
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
	if err := checkReplaceable(s, lrn); err != nil {
		return err
	}

	members, err := c.findMembers(o, s.Servers, lrn)
	if err != nil {
		return err
	}

	var unread error // an error of the output; the other members are replaced nevertheless
	for _, url := range slices.Sorted(maps.Keys(members)) {
		initial, err := keyspace.ReplaceEtcdMember(o.ctx, url, keys.DefaultPrefix, members[url], c.Peer)
		if err != nil {
			return err
		}

		o.note("start the new member with these flags, under the dead one's name and with an empty data folder")
		if err := o.print("--initial-cluster=" + initial + " --initial-cluster-state=existing\n"); err != nil {
			unread = err
		}
	}

	if unread != nil {
		return unread
	}
	o.note("once the new server's worker is there: neco recover, if an update is stopped, or else neco repair")

	return o.commitChanges(func(s decide.Snapshot, _ time.Time) ([]updater.Change, error) {
		key := keys.BootServer(lrn)
		changes := slices.DeleteFunc(decide.Unregister(s, lrn), func(c updater.Change) bool {
			return c.Key == key
		})
		return append(changes, updater.Change{Key: key, Value: struct{}{}}), checkReplaceable(s, lrn)
	})
}

// checkReplaceable refuses a server that lives, or that takes part in an update that runs.
func checkReplaceable(s decide.Snapshot, lrn int) error {
	if _, alive := s.Present[lrn]; alive {
		return fmt.Errorf("server %d lives: its worker is there; nothing was changed", lrn)
	}
	if r := s.Current; r != nil && !r.Ended() && slices.Contains(r.Servers, lrn) {
		return console.Hint(fmt.Errorf("the update that runs waits for server %d; nothing was changed", lrn),
			"neco stop, then this, then neco recover")
	}

	return nil
}

// findMembers returns the server's members by the state URLs of their etcds.
func (c bootserverReplaceCmd) findMembers(o *operator, servers []int, lrn int) (map[string]string, error) {
	if c.Member != "" {
		return map[string]string{o.url: c.Member}, nil
	}

	found := map[string]string{}
	for _, component := range o.parts.Manifest.Components {
		host, options, _ := strings.Cut(strings.TrimPrefix(component.Etcd, "etcd://"), "?")
		at := func(lrn int) string { return strings.ReplaceAll(host, "{lrn}", strconv.Itoa(lrn)) }
		var others []string
		for _, other := range slices.DeleteFunc(slices.Clone(servers), func(other int) bool { return other == lrn }) {
			others = append(others, at(other))
		}
		if component.Etcd != "" {
			found["etcd://"+strings.Join(others, ",")+"?"+options] = at(lrn)
		}
	}

	if len(found) == 0 {
		return nil, console.Hint(errors.New("no component of this plan says that it is an etcd, so that it is not known which member is the server's"),
			"of the store's own etcd: --member NAME; of a component: etcd: \"etcd://10.0.{lrn}.3:2379\" in its manifest")
	}

	return found, nil
}
