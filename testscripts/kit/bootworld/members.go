package bootworld

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/fakes/etcdtest"
)

// members VERB ARG...: an etcd of three members, m0, m1 and m2, which is neco's store.
//
//	start            starts the cluster, and sets NECO_STATE to its URL
//	kill NAME...     kills members
//	revive NAME      starts a killed member again
//	join NAME FILE   starts a new member in place of a killed one, with the flags in the file
func members(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: members start|kill|revive|join ...")
	}
	w := bootWorldOf(ts)
	if args[0] == "start" {
		c, err := etcdtest.Start(etcdtest.Options{Members: 3})
		ts.Check(err)
		ts.Defer(func() { _ = c.Stop() })
		w.cluster = c
		ts.Setenv("NECO_STATE", c.URL("/neco"))
		return
	}
	for _, m := range w.cluster.Members {
		if !slices.Contains(args[1:], m.Name()) {
			continue
		}
		switch args[0] {
		case "kill":
			ts.Check(m.Kill())
		case "revive":
			ts.Check(m.Start())
		case "join":
			ts.Check(m.Join(strings.Fields(ts.ReadFile(args[2]))...))
		default:
			ts.Fatalf("members: unknown verb %q", args[0])
		}
	}
}
