package neco

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
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

// Run registers servers.
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
	if err == nil && len(known) > 0 {
		o.note("registered already: %s", record.ListServers(known))
	}
	if err != nil {
		return err
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

// Run unregisters servers.
func (c bootserverRemoveCmd) Run(o *operator) error {
	all, err := c.parse()
	if err != nil {
		return err
	}
	o.setDetail("%s", record.ListServers(all))
	var awaited, stopped bool
	err = o.commitChanges(func(s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		awaited, stopped = false, false
		for _, lrn := range all {
			if !slices.Contains(s.Servers, lrn) {
				return nil, console.Hint(fmt.Errorf("boot server %d is not registered", lrn), "neco bootserver list")
			}
			changes = append(changes, decide.Unregister(s, lrn)...)
			if r := s.Current; r != nil && slices.Contains(r.Servers, lrn) {
				awaited, stopped = awaited || !r.Ended() && !r.Stop, stopped || r.Stop
			}
		}
		return changes, nil
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

type bootserverListCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

// Run lists the servers, in numeric order.
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

// Run creates the keys.
func (initCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}
	made, err := updater.InitStore(o.ctx, url)
	if err != nil {
		return err
	}
	if !made {
		o.note("neco's keys are there already")
		return nil
	}
	o.note("neco's keys were created; register boot servers with: neco bootserver add LRN")
	return nil
}
