package copying

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/archive"
	"bijou/state/keyspace"
	"bijou/state/progress"
)

// Backup writes all keys of an environment as they are at one revision, and the
// blobs that they refer to. Agents may work meanwhile. The header is complete but for
// what only its caller knows. ErrNotFound: what a key refers to went before it was
// read, since that changed meanwhile; begin again.
func Backup(ctx context.Context, s *state.State, w *archive.Writer) (archive.Header, error) {
	h := archive.Header{Kind: archive.Environment, Time: time.Now().UTC(), StateFormat: state.FormatVersion}
	var all []keyspace.KeyValue
	err := s.View(ctx, func(v *state.View) error {
		env, err := v.Environment()
		if err != nil {
			return err
		}
		h.Name, h.UUID, h.Provider = env.Name, env.UUID, env.Provider
		if all, err = listContentsInUse(v); err != nil {
			return err
		}
		h.Revision, err = v.Revision()
		return err
	})
	if err != nil {
		return h, fmt.Errorf("cannot read the environment: %w", err)
	}
	list := make([]archive.Key, len(all))
	for i, kv := range all {
		list[i] = archive.Key{Key: kv.Key, Value: kv.Value}
	}
	if err := w.AddKeys(list); err != nil {
		return h, err
	}
	h.Keys = len(list)
	h.Blobs, err = backUpBlobs(ctx, s, w, all)
	return h, err
}

// listContentsInUse leaves out the heads of blobs that nothing refers to.
func listContentsInUse(v *state.View) ([]keyspace.KeyValue, error) {
	all, err := listContents(v)
	if err != nil {
		return nil, err
	}
	used, err := v.ReferencedBlobs()
	unused := func(kv keyspace.KeyValue) bool {
		sum, ok := strings.CutPrefix(kv.Key, keyspace.BlobHeadsPrefix)
		return ok && !used[sum]
	}
	return slices.DeleteFunc(all, unused), err
}

func backUpBlobs(ctx context.Context, s *state.State, w *archive.Writer, all []keyspace.KeyValue) (n int, err error) {
	p := progress.Steps{What: "chunks backed up", Total: countChunks(all)}
	for _, kv := range all {
		sum, chunks, ok := blobOf(kv)
		if !ok {
			continue
		}
		err := w.Add(archive.BlobName(sum), func(to io.Writer) error {
			blob, err := s.OpenBlob(ctx, sum)
			if err != nil {
				return err
			}
			_, err = io.Copy(to, blob)
			return err
		})
		if err != nil {
			return n, err
		}
		n++
		p.Done += chunks
		progress.Report(ctx, p)
	}
	return n, nil
}
