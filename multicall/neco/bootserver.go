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

type bootserverCmd struct {
	Add     bootserverAddCmd     `cmd:"" help:"Register boot servers."`
	Remove  bootserverRemoveCmd  `cmd:"" help:"Unregister boot servers, dead ones for instance."`
	Replace bootserverReplaceCmd `cmd:"" help:"Have a new server, with its member of etcd, take a dead one's place."`
	List    bootserverListCmd    `cmd:"" help:"List the boot servers."`
}

type lrnArgs struct {
	LRN []string `arg:"" name:"lrn" help:"Logical rack numbers."`
}

func (l lrnArgs) parse() (all []int, err error) {
	for _, word := range l.LRN {
		n, err := record.ParseLRN(word)
		if err != nil {
			return nil, console.Usage(err)
		}
		all = append(all, n)
	}
	return record.SortServers(all), nil
}

type bootserverAddCmd struct {
	lrnArgs
	reasonFlag
}

func (c bootserverAddCmd) Run(o *operator) error {
	all, err := c.parse()
	if err != nil {
		return err
	}
	o.setDetail("%s", record.ListServers(all))
	var known []int
	err = o.commitChanges(func(s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		known = nil
		for _, lrn := range all {
			if slices.Contains(s.Servers, lrn) {
				known = append(known, lrn)
				continue
			}
			changes = append(changes, updater.Change{Key: keys.BootServer(lrn), Value: struct{}{}})
		}
		return changes, nil
	})
	if err != nil {
		return err
	}
	if len(known) > 0 {
		o.note("registered already: %s", record.ListServers(known))
	}
	s, err := o.loadSnapshot()
	unseen := slices.DeleteFunc(s.Unseen, func(lrn int) bool { return !slices.Contains(all, lrn) })
	if len(unseen) > 0 {
		o.note("no worker of server %s was ever seen; no update begins for it until one was", record.ListServers(unseen))
	}
	return err
}

type bootserverRemoveCmd struct {
	lrnArgs
	reasonFlag
}

func (c bootserverRemoveCmd) Run(o *operator) error {
	all, err := c.parse()
	if err != nil {
		return err
	}
	o.setDetail("%s", record.ListServers(all))
	var awaited, stopped bool
	err = o.commitChangesIn(func(v *keyspace.View, s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		awaited, stopped = false, false
		for _, lrn := range all {
			if !slices.Contains(s.Servers, lrn) {
				left, err := hasLeftovers(v, s, lrn)
				if err != nil {
					return nil, err
				}
				if !left {
					return nil, console.Hint(fmt.Errorf("boot server %d is not registered", lrn), "neco bootserver list")
				}
			}
			changes = append(changes, decide.Unregister(s, lrn)...)
			if r := s.Current; r != nil && slices.Contains(r.Servers, lrn) {
				awaited = awaited || !r.Ended() && !r.Stop
				stopped = stopped || r.Stop
			}
		}
		return registrationsFirst(changes), nil
	})
	switch {
	case err != nil:
		return err
	case stopped:
		o.note("the update that was stopped is made again without it by: neco recover")
	case awaited:
		o.note("the update that runs still waits for it; if it is dead: neco stop, and then neco recover")
	}
	return nil
}

// hasLeftovers reports whether a removal of many servers was interrupted before it came to what
// the dead worker of this one has left.
func hasLeftovers(v *keyspace.View, s decide.Snapshot, lrn int) (bool, error) {
	if _, alive := s.Present[lrn]; alive {
		return false, nil
	}
	return v.HasUnguarded(keys.Claim(lrn))
}

// registrationsFirst puts the changes of registrations before all others, so that no update begins
// for a part of the servers that are removed.
func registrationsFirst(changes []updater.Change) []updater.Change {
	isLater := func(c updater.Change) int {
		if strings.HasPrefix(c.Key, keys.BootServers) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(changes, func(a, b updater.Change) int { return isLater(a) - isLater(b) })
	return changes
}

type bootserverListCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

func (c bootserverListCmd) Run(o *operator) error {
	s, err := o.loadSnapshot()
	if err != nil {
		return err
	}
	if c.Format != "text" {
		return o.encode(c.Format, append([]int{}, s.Servers...))
	}
	var b strings.Builder
	for _, lrn := range s.Servers {
		fmt.Fprintln(&b, lrn)
	}
	return o.print(b.String())
}

type initCmd struct{}

func (initCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}
	switch made, err := updater.InitStore(o.ctx, url); {
	case err != nil:
		return err
	case made:
		o.note("neco's keys were created; register boot servers with: neco bootserver add LRN")
	default:
		o.note("neco's keys are there already")
	}
	return nil
}

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
	if err == nil {
		err = checkReplaceable(s, lrn)
	}
	if err != nil {
		return err
	}
	members, err := c.findMembers(o, s.Servers, lrn)
	if err != nil {
		return err
	}
	var unread error // the next member is replaced all the same: half of them would help nobody
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
		changes := slices.DeleteFunc(decide.Unregister(s, lrn), func(c updater.Change) bool { return c.Key == key })
		return append(changes, updater.Change{Key: key, Value: struct{}{}}), checkReplaceable(s, lrn)
	})
}

// checkReplaceable refuses a server that lives, or that takes part in an update that runs.
func checkReplaceable(s decide.Snapshot, lrn int) error {
	if _, alive := s.Present[lrn]; alive {
		return fmt.Errorf("server %d lives: its worker is there; nothing was changed", lrn)
	}
	if r := s.Current; r != nil && !r.Ended() && slices.Contains(r.Servers, lrn) {
		return console.Hint(fmt.Errorf("the update that runs waits for server %d; nothing was changed", lrn), "neco stop, then this, then neco recover")
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
