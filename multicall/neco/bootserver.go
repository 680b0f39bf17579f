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

type lrnArgs struct {
	LRN []string `arg:"" name:"lrn" help:"Logical rack numbers."`
}

// parse parses the servers' numbers (LRN).
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
