package bootworld

import (
	"context"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/state/store/sqlite"
	"bijou/updater/keys"
)

// scribble KEY TEXT: writes the text unchanged to one of neco's keys, as a different program could.
func scribble(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: scribble KEY TEXT")
	}
	ctx, url, key := context.Background(), ts.Getenv("NECO_STATE"), args[0]
	open := etcd.Open
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		open, url, key = sqlite.Open, path, keys.DefaultPrefix+key
	}
	s, err := open(ctx, url)
	ts.Check(err)
	defer s.Close()
	_, err = s.Commit(ctx, store.Txn{Ops: []store.Op{{Key: key, Value: []byte(args[1])}}})
	ts.Check(err)
}
