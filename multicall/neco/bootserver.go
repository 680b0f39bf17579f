package neco

import (
	"bijou/multicall/console"
	"bijou/updater/record"
)

type bootserverCmd struct {
	Add     bootserverAddCmd     `cmd:"" help:"Register boot servers."`
	Remove  bootserverRemoveCmd  `cmd:"" help:"Unregister boot servers, for example after they have died."`
	Replace bootserverReplaceCmd `cmd:"" help:"Replace a dead server, and its etcd member, with a new one."`
	List    bootserverListCmd    `cmd:"" help:"List the boot servers."`
}

// lrnArgs are the arguments of commands for several servers.
type lrnArgs struct {
	LRN []string `arg:"" name:"lrn" help:"Logical rack numbers."`
}

// parse returns the servers' numbers (LRN) in numeric order, without duplicates. It returns a usage error if one of
// them is invalid.
func (l lrnArgs) parse() (servers []int, err error) {
	for _, word := range l.LRN {
		lrn, err := record.ParseLRN(word)
		if err != nil {
			return nil, console.Usage(err)
		}
		servers = append(servers, lrn)
	}

	return record.SortServers(servers), nil
}
