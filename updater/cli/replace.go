package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/updater"
	"bijou/updater/record"
)

type bootserverReplaceCmd struct {
	LRN    string `arg:"" name:"lrn" help:"Logical rack number of the dead server, and of the new one."`
	Member string `placeholder:"NAME" help:"The dead server's member of the store's own etcd; default: its member of each component that the plan says is an etcd."`
	Peer   string `placeholder:"URL" help:"Where the new member meets the others; default: where the dead one did."`
	reason
}

// Help is what `neco bootserver replace --help` says besides.
func (bootserverReplaceCmd) Help() string {
	return `The dead server's member of etcd is taken out, and a new one in, unless it lives or too few others do. What that is to be
started with is printed. The new server may then work under the dead one's number.

Examples:
  neco bootserver replace 2
  neco bootserver replace 2 --member etcd-2`
}

// Run replaces it. What was cut short is repeated by the same command, with --peer.
func (c bootserverReplaceCmd) Run(o *operator) error {
	lrn, err := record.ParseLRN(c.LRN)
	if err != nil {
		return console.Usage(err)
	}
	o.detail("%d", lrn)
	var s updater.Snapshot
	err = o.view(func(v *state.KeyView) (err error) { s, err = updater.Load(v, o.parts.Version); return err })
	if err == nil {
		err = replaceable(s, lrn)
	}
	if err != nil {
		return err
	}
	clusters, err := c.clusters(o, s, lrn)
	if err != nil {
		return err
	}
	for _, url := range slices.Sorted(maps.Keys(clusters)) {
		initial, err := state.ReplaceEtcdMember(o.ctx, url, clusters[url])
		if err != nil {
			return err
		}
		if err := o.print(fmt.Sprintf("--initial-cluster=%s --initial-cluster-state=existing\n", initial)); err != nil {
			return err
		}
		o.note("start the new member with that, under the dead one's name and with an empty data folder")
	}
	err = o.decide(func(s updater.Snapshot, _ time.Time) ([]updater.Change, error) {
		changes := slices.DeleteFunc(updater.Unregister(s, lrn), func(ch updater.Change) bool { return ch.Key == s.Keys.BootServer(lrn) })
		return append(changes, updater.Change{Key: s.Keys.BootServer(lrn), Value: struct{}{}}), replaceable(s, lrn)
	})
	switch {
	case err != nil:
		return err
	case s.Current != nil && s.Current.Stop:
		o.note("once the new server's worker is there, the update that was stopped is made again by: neco recover")
	case s.Current != nil && slices.Contains(s.Current.Servers, lrn):
		o.note("once the new server's worker is there, it is brought to what the others have by: neco repair")
	}
	return nil
}

// replaceable refuses a server that lives, or that an update has got half-way.
func replaceable(s updater.Snapshot, lrn int) error {
	if _, alive := s.Present[lrn]; alive {
		return console.Hint(fmt.Errorf("server %d lives: its worker is there; nothing was changed", lrn), "neco status")
	}
	if r := s.Current; r != nil && !r.Ended() && slices.Contains(r.Servers, lrn) {
		return console.Hint(fmt.Errorf("the update that runs waits for server %d; nothing was changed", lrn), "neco stop, then this, then neco recover")
	}
	return nil
}

// clusters are the state URLs of the etcds of which the server has a member.
func (c bootserverReplaceCmd) clusters(o *operator, s updater.Snapshot, lrn int) (map[string]state.EtcdReplacement, error) {
	if c.Member != "" {
		url, err := o.where()
		return map[string]state.EtcdReplacement{url: {Name: c.Member, Peer: c.Peer}}, err
	}
	found := map[string]state.EtcdReplacement{}
	for _, component := range o.parts.Manifest.Components {
		hosts, options, _ := strings.Cut(strings.TrimPrefix(component.Etcd, "etcd://"), "?")
		if component.Etcd == "" {
			continue
		}
		at := func(lrn int) string { return strings.ReplaceAll(hosts, "{lrn}", strconv.Itoa(lrn)) }
		var others []string
		for _, other := range s.Servers {
			if other != lrn {
				others = append(others, at(other))
			}
		}
		found["etcd://"+strings.Join(others, ",")+"?"+options] = state.EtcdReplacement{Client: at(lrn), Peer: c.Peer}
	}
	if len(found) == 0 {
		return nil, console.Hint(errors.New("no component of this plan says that it is an etcd, so that it is not known which member is the server's"),
			"of the store's own etcd: --member NAME; of a component: etcd: \"etcd://10.0.{lrn}.3:2379\" in its manifest")
	}
	return found, nil
}
