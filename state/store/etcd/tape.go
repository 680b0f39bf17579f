package etcd

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// change is what one commit did to etcd's keys that are watched.
type change struct {
	revision int64
	events   map[string]*mvccpb.Event // by key
}

// listener hears what comes over a tape, on the tape's goroutine.
type listener interface {
	// created: the watch tells all that happened after the revision.
	created(id, revision int64)
	// changed: one commit, whole, later than those before.
	changed(c change)
	// told: everything up to the revision was told to the watches there are.
	told(revision int64)
	// trimmed: what the watch was to tell of is there only since the revision
	// kept. The watch has ended, but stands in the way until it is cancelled.
	trimmed(id, kept int64)
}

// tape is one stream of many of etcd's watches. Etcd sends what a commit did to
// each watch apart, and in no order of watches; only when it says how far it is
// with all of them is a commit known to be whole. So after each event the tape
// asks; what comes meanwhile waits.
//
// It speaks to the stream itself, not through clientv3's watcher, which has a
// goroutine for each watch and repeats each word about progress to all of them.
type tape struct {
	d *db
	l listener

	mu      sync.Mutex
	out     []*pb.WatchRequest // to be sent
	starts  map[int64]int64    // of watches that are not created yet
	asked   time.Duration      // how far it is, without an answer yet: when to ask again; else 0
	heard   time.Time          // when anything came last
	wake    chan struct{}      // one is enough: it says "look"
	pending map[int64]change   // by revision; of the reader only
}

const (
	askAgain     = 10 * time.Millisecond // doubled each time: etcd does not answer while a watch catches up
	askAgainMost = 40 * time.Millisecond
	askIdle      = 3 * time.Second
	silence      = 3 * askIdle // without a word for so long the stream is given up
)

func newTape(d *db, l listener) *tape {
	return &tape{d: d, l: l, starts: map[int64]int64{}, wake: make(chan struct{}, 1), pending: map[int64]change{}}
}

// watch adds a watch of a span, from the revision on; 0 is from now on.
func (t *tape) watch(id int64, s span, start int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starts[id] = start
	t.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(s.begin), RangeEnd: []byte(s.end), StartRevision: start, WatchId: id, Fragment: true,
	}}})
}

// unwatch ends a watch; something of it may still come.
func (t *tape) unwatch(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

// ask asks how far etcd is with all watches.
func (t *tape) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == 0 {
		t.asked = askAgain
		t.send(progressRequest())
	}
}

func progressRequest() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
}

// send queues a request. The caller holds the lock.
func (t *tape) send(r *pb.WatchRequest) {
	t.out = append(t.out, r)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run plays until the stream breaks or the context ends. A tape is played once.
func (t *tape) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	stream, err := pb.NewWatchClient(t.d.client.ActiveConnection()).
		Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	t.hear()
	sender.Go(func() {
		defer cancel()
		t.sendAll(ctx, stream)
	})
	for {
		resp, err := stream.Recv()
		if err == nil {
			t.hear()
			err = t.take(resp)
		}
		if err != nil {
			return err
		}
	}
}

func (t *tape) hear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = time.Now()
}

// sendAll sends what is queued, and asks on its own account: again, where there
// was no answer, and when nothing was heard for long.
func (t *tape) sendAll(ctx context.Context, stream pb.Watch_WatchClient) {
	for {
		out, wait, err := t.due()
		if err != nil {
			return
		}
		for _, r := range out {
			if stream.Send(r) != nil {
				return
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-t.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

var errSilent = errors.New("etcd has fallen silent")

// due is what to send now, and when to look again.
func (t *tape) due() (out []*pb.WatchRequest, wait time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	quiet := time.Since(t.heard)
	if quiet > silence {
		return nil, 0, errSilent
	}
	out, t.out = t.out, nil
	if len(out) == 0 && (t.asked > 0 || quiet > askIdle) {
		t.asked = min(max(2*t.asked, askAgain), askAgainMost)
		out = append(out, progressRequest())
	}
	if t.asked > 0 {
		return out, t.asked, nil
	}
	return out, askIdle, nil
}

// take plays one message.
func (t *tape) take(resp *pb.WatchResponse) error {
	switch {
	case resp.Created && resp.Canceled && resp.CancelReason == rpctypes.ErrGRPCPermissionDenied.Error():
		return rpctypes.ErrPermissionDenied
	case resp.Created && resp.Canceled:
		return errors.New(resp.CancelReason)
	case resp.Created:
		t.create(resp)
	case resp.CompactRevision != 0:
		t.l.trimmed(resp.WatchId, resp.CompactRevision)
	case resp.Canceled && resp.CancelReason != "":
		return errors.New(resp.CancelReason)
	case resp.WatchId == clientv3.InvalidWatchID:
		t.progress(resp.Header.Revision)
	case len(resp.Events) > 0:
		for _, e := range resp.Events {
			t.add(e)
		}
		t.ask()
	}
	return nil
}

func (t *tape) create(resp *pb.WatchResponse) {
	t.mu.Lock()
	from := t.starts[resp.WatchId] - 1
	if from < 0 {
		from = resp.Header.Revision
	}
	delete(t.starts, resp.WatchId)
	if len(t.starts) == 0 && t.asked > 0 {
		t.send(progressRequest()) // the answer that came meanwhile was of no use
	}
	t.mu.Unlock()
	t.l.created(resp.WatchId, from)
}

func (t *tape) add(e *mvccpb.Event) {
	c, ok := t.pending[e.Kv.ModRevision]
	if !ok {
		c = change{e.Kv.ModRevision, map[string]*mvccpb.Event{}}
		t.pending[c.revision] = c
	}
	c.events[string(e.Kv.Key)] = e
}

// progress says that all was sent up to the revision, but for watches that are
// being created: what they have told may come after.
func (t *tape) progress(revision int64) {
	t.mu.Lock()
	early := len(t.starts) > 0
	if !early {
		t.asked = 0
	}
	t.mu.Unlock()
	if early {
		return
	}
	for _, r := range slices.Sorted(maps.Keys(t.pending)) {
		if r > revision {
			t.ask()
			break
		}
		t.l.changed(t.pending[r])
		delete(t.pending, r)
	}
	t.l.told(revision)
}
