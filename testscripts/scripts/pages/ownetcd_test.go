package pages

import (
	"net/url"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/fakes/etcdtest"
)

// ownEtcd keeps the separate etcd of each script.
type ownEtcd struct{ clusters sync.Map }

// run is the command ownetcd start FILE|kill|revive|password NEW. start starts an etcd that no other script
// uses, and sets BIJOU_STATE to it. The etcd requires a user, whose password is in the file.
func (o *ownEtcd) run(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) == 2 != (args[0] == "start" || args[0] == "password") {
		ts.Fatalf("usage: ownetcd start FILE|kill|revive|password NEW")
	}
	if args[0] == "start" {
		c, err := etcdtest.Start(etcdtest.Options{})
		ts.Check(err)
		ts.Defer(func() { ts.Check(c.Stop()) })
		ts.Check(c.EnableUsers("/own/env", strings.TrimSpace(ts.ReadFile(args[1]))))
		ts.Setenv("BIJOU_STATE", c.URL("/own/env")+"&user=bijou&password-file="+url.QueryEscape(ts.MkAbs(args[1])))
		o.clusters.Store(ts.Getenv("WORK"), c)
		return
	}
	found, ok := o.clusters.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("ownetcd start comes first")
	}
	c := found.(*etcdtest.Cluster)
	switch args[0] {
	case "kill":
		ts.Check(c.Members[0].Kill())
	case "revive":
		ts.Check(c.Members[0].Start())
	case "password":
		ts.Check(c.ChangePassword(args[1]))
	}
}
