package bootworld

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// failing SERVERS LENGTH: starts an update of servers 1 to SERVERS and makes each of their workers fail
// for a different reason of LENGTH bytes.
func failing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: failing SERVERS LENGTH")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	length, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx := context.Background()
	store, err := updater.OpenStore(ctx, ts.Getenv("NECO_STATE"))
	ts.Check(err)
	defer store.Close()

	began := time.Now().UTC()
	request := record.Request{Version: "1.0-1", ID: 1, Attempt: 1, StartedAt: began, AttemptAt: began}
	for lrn := range n {
		request.Servers = append(request.Servers, lrn+1)
	}
	for batch := range slices.Chunk(request.Servers, 100) {
		ts.Check(store.Update(ctx, func(tx *keyspace.Tx) error {
			for _, lrn := range batch {
				w := record.Status{Version: "1.0-1", Request: 1, Attempt: 1, Step: 1, StepName: "a/update", Error: true, At: began}
				w.Message = fmt.Sprintf("disk %d is full ", lrn) + strings.Repeat("x", length)
				if err := tx.Put(keys.Worker(lrn), w); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	ts.Check(store.Update(ctx, func(tx *keyspace.Tx) error {
		h := record.History{ID: 1, By: "release", To: "1.0-1", Servers: request.Servers, StartedAt: began}
		h.Begin(1, "", began)
		if err := tx.Put(keys.History(1), h); err != nil {
			return err
		}
		return tx.Put(keys.Current, request)
	}))
}
