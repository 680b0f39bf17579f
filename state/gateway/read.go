package gateway

import (
	"context"
	"errors"
	"io"
	"time"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

const (
	// maxSnapshotAge limits how long a snapshot is open, since SQLite cannot shorten its write-ahead log
	// while a snapshot is open.
	maxSnapshotAge = time.Minute
	// targetPageBytes is the size of a full response, in bytes. Further results go to the next response.
	targetPageBytes = 1 << 20
)

// Read answers the reads of one snapshot, until the client has sent its last request. Requests fail once the
// snapshot has been open for maxSnapshotAge.
func (s *session) Read(stream protocol.Store_ReadServer) error {
	ctx := stream.Context()
	v, closeView, err := s.openView(ctx)
	if err != nil {
		return protocol.ToStatus(err)
	}
	defer closeView()

	// Reads fail once the snapshot is closed.
	expired := time.AfterFunc(maxSnapshotAge, v.snap.Close)
	defer expired.Stop()

	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := v.answer(ctx, request, stream.Send); err != nil {
			return protocol.ToStatus(err)
		}
	}
}

// answer sends the requested keys, and then the list of the requested prefix, if any, in pages. A page has a
// separate list with the names of requested keys that the identity cannot read. Keys that are absent are left
// out. answer returns store.ErrDenied if the identity cannot list the prefix.
func (v *view) answer(ctx context.Context, request *protocol.ReadRequest, send func(*protocol.ReadResponse) error) error {
	page := &protocol.ReadResponse{}
	var err error
	if page.Revision, err = v.snap.Revision(ctx); err != nil {
		return err
	}

	// add adds a key to the page. It sends a full page and starts the next.
	size := 0
	add := func(kv store.KV) error {
		page.Found = append(page.Found, protocol.FromKV(kv))
		size += len(kv.Key) + len(kv.Value)
		if size < targetPageBytes {
			return nil
		}

		page.More = true
		err := send(page)
		page = &protocol.ReadResponse{Revision: page.GetRevision()}
		size = 0
		return err
	}

	// A prefetch saves round trips only for more than one key.
	keys := protocol.ToKeys(request.GetKeys())
	if len(keys) > 1 {
		if err := v.prefetch(ctx, keys); err != nil {
			return err
		}
	}

	for _, key := range keys {
		kv, ok, err := v.get(ctx, key)
		if errors.Is(err, store.ErrDenied) {
			page.Denied = append(page.Denied, []byte(key))
			continue
		}
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := add(kv); err != nil {
			return err
		}
	}

	if request.GetList() {
		if err := v.listAllowed(ctx, string(request.GetPrefix()), add); err != nil {
			return err
		}
	}
	return send(page)
}

// listAllowed calls add for each key with the prefix that the identity can read. It returns store.ErrDenied if
// the identity cannot list the prefix.
func (v *view) listAllowed(ctx context.Context, prefix string, add func(store.KV) error) error {
	if err := v.rights.MayList(ctx, prefix); err != nil {
		return err
	}

	kvs, err := v.snap.List(ctx, prefix)
	if err != nil {
		return err
	}

	for _, kv := range kvs {
		// present makes an empty value differ from nil, which would mean that the key is absent.
		err := v.mayRead(ctx, kv.Key, present(kv.Value))
		if errors.Is(err, store.ErrDenied) {
			continue
		}
		if err != nil {
			return err
		}
		// The identity may have the right to only a part of the value.
		kv.Value = v.rights.Show(kv.Key, kv.Value)
		if err := add(kv); err != nil {
			return err
		}
	}

	return nil
}
