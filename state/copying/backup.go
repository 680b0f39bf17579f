package copying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/backupfile"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Backup writes the keys of an environment as they are at one revision, and the blobs that they refer to. It
// leaves out useless keys; see listContentsInUse. Agents can work during the backup. Backup returns the header
// for the caller to complete. It returns ErrNotFound if the store has no environment, or if the environment has
// changed during the backup and a blob is gone. In the second case the caller must begin again. The caller,
// multicall/juju/backup.go, adds the directories of units and storage.
func Backup(ctx context.Context, s *state.State, w *backupfile.Writer) (backupfile.Header, error) {
	h := backupfile.Header{Kind: backupfile.Environment, Time: time.Now().UTC(), StateFormat: state.FormatVersion}
	var contents []keyspace.KeyValue
	err := s.View(ctx, func(v *state.View) error {
		env, err := v.Environment()
		if err != nil {
			return err
		}

		h.Name = env.Name
		h.UUID = env.UUID
		h.Provider = env.Provider

		contents, err = listContentsInUse(v)
		if err != nil {
			return err
		}
		h.Revision, err = v.Revision()
		return err
	})
	if err != nil {
		return h, fmt.Errorf("cannot read the model: %w", err)
	}

	backupKeys := make([]backupfile.Key, len(contents))
	for i, kv := range contents {
		backupKeys[i] = backupfile.Key{Key: kv.Key, Value: kv.Value}
	}
	if err := w.AddKeys(backupKeys); err != nil {
		return h, err
	}

	h.Keys = len(backupKeys)
	h.Blobs, err = backUpBlobs(ctx, s, w, contents)
	return h, err
}

// listContentsInUse lists the keys that a backup contains: the keys of listContents, without the heads of
// unused or incomplete blobs, heads that do not decode, and values that are not JSON. It reports damage: such
// values, and heads that do not decode.
func listContentsInUse(v *state.View) ([]keyspace.KeyValue, error) {
	contents, err := listContents(v)
	if err != nil {
		return nil, err
	}
	used, err := v.ReferencedBlobs()
	if err != nil {
		return nil, err
	}

	// A restoration would refuse a backup with an incomplete blob, and the blob is useless anyway. Nobody can
	// read a value that is not JSON, and a backup cannot contain it. Skips reports damage, and returns true for it.
	isLeftOut := func(kv keyspace.KeyValue) bool {
		sum, isBlobHead := strings.CutPrefix(kv.Key, keyspace.BlobHeadsPrefix)
		if !isBlobHead {
			return !json.Valid(kv.Value) && v.Skips(keyspace.NewDamage(kv.Key, "its value is not JSON, so the backup does not contain it"))
		}
		head, err := keyspace.DecodeBlobHead(kv)
		return v.Skips(err) || !used[sum] || !head.Complete
	}

	return slices.DeleteFunc(contents, isLeftOut), nil
}

// backUpBlobs writes the blobs whose heads are among the contents, and returns their number.
func backUpBlobs(
	ctx context.Context,
	s *state.State,
	w *backupfile.Writer,
	contents []keyspace.KeyValue,
) (n int, err error) {
	p := keyspace.Steps{What: "chunks backed up", Total: countChunks(contents)}

	for _, kv := range contents {
		sum, chunks, ok := blobOf(kv)
		if !ok {
			continue
		}

		err := w.Add(backupfile.BlobName(sum), func(to io.Writer) error {
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
		s.Keys().Progress.Report(p)
	}

	return n, nil
}

// backupSource is a backup as a source to copy from.
type backupSource struct {
	header  backupfile.Header
	archive *backupfile.Reader
	keys    []keyspace.KeyValue

	sum  string        // the sum of the blob that is being read, chunk by chunk
	blob io.ReadCloser // nil if no blob is being read
}

// newBackupSource checks the format and the keys of a backup, and returns the backup as a source to copy from.
// It returns the errors of backupCheck's methods.
func newBackupSource(a *backupfile.Reader) (*backupSource, error) {
	b := &backupSource{header: a.Header, archive: a}
	c := backupCheck{archive: a}
	if err := c.checkFormat(); err != nil {
		return nil, err
	}

	for _, k := range a.Keys {
		if err := c.checkKey(k); err != nil {
			return nil, err
		}
		b.keys = append(b.keys, keyspace.KeyValue{Key: k.Key, Value: k.Value})
	}

	if err := c.checkEnvironment(); err != nil {
		return nil, err
	}
	return b, nil
}

// CheckBackup reads the backup of an environment at path, and returns its header. It returns an error if a
// restoration would refuse the backup. It does not keep the keys in memory.
func CheckBackup(path string) (h backupfile.Header, err error) {
	err = backupfile.ScanFile(path, backupfile.Environment, func(a *backupfile.Reader) error {
		c := backupCheck{archive: a}
		if err := c.checkFormat(); err != nil {
			return err
		}
		if err := a.EachKey(c.checkKey); err != nil {
			return err
		}

		h = a.Header
		return c.checkEnvironment()
	})

	return h, err
}

// backupCheck checks, key by key, that a backup can be restored. Its user calls checkFormat, then checkKey
// for each key, and then checkEnvironment.
type backupCheck struct {
	archive     *backupfile.Reader
	environment *keyspace.KeyValue // the environment's record; nil until checkKey has found it
}

// checkFormat returns ErrFormat if the backup's keys do not have the format that this binary supports.
func (c *backupCheck) checkFormat() error {
	h := c.archive.Header
	if h.StateFormat == state.FormatVersion {
		return nil
	}
	return keyspace.Refuse(state.ErrFormat, "the state in the backup has format %d, but this bijou supports only format %d: use the bijou that wrote it, %s, or a newer one",
		h.StateFormat, state.FormatVersion, h.Bijou)
}

// checkKey checks one key of a backup. It returns backupfile.ErrDamaged if Backup never writes such a key, or
// if the key is the head of a blob that the backup does not contain completely. It sets c.environment if the
// key is that of the environment's record.
func (c *backupCheck) checkKey(k backupfile.Key) error {
	kv := keyspace.KeyValue{Key: k.Key, Value: k.Value}
	// listAroundBlobs finds only keys of printable ASCII characters, so a backup does not have other keys.
	isUnprintable := func(r rune) bool { return r < ' ' || r > '~' }
	isChunk := strings.HasPrefix(k.Key, keyspace.BlobsPrefix)
	if isStoreLocal(k.Key) || isChunk || strings.ContainsFunc(k.Key, isUnprintable) {
		return fmt.Errorf("%w: it has the key %q", backupfile.ErrDamaged, k.Key)
	}

	// For a head that does not decode, blobOf returns ok false, and Decode an error.
	sum, _, ok := blobOf(kv)
	if ok || strings.HasPrefix(k.Key, keyspace.BlobHeadsPrefix) {
		head, err := keyspace.Decode[keyspace.BlobHead](kv)
		if err != nil || !head.Complete || head.Size != c.archive.Size(backupfile.BlobName(sum)) {
			return fmt.Errorf("%w: its blob %q is incomplete", backupfile.ErrDamaged, sum)
		}
	}

	if k.Key == keys.Environment {
		c.environment = &kv
	}
	return nil
}

// checkEnvironment returns backupfile.ErrDamaged if the backup has no record of an environment, or if the
// record does not belong to the backup's header. It returns keyspace.ErrDamaged if the record does not decode.
// It must be called after checkKey was called for all keys.
func (c *backupCheck) checkEnvironment() error {
	if c.environment == nil {
		return fmt.Errorf("%w: it contains no model", backupfile.ErrDamaged)
	}

	record, err := keyspace.Decode[state.Environment](*c.environment)
	if err != nil {
		return err
	}
	if record.UUID != c.archive.UUID || record.Name != c.archive.Name {
		return fmt.Errorf("%w: its header belongs to a different model", backupfile.ErrDamaged)
	}

	return nil
}

// BackupEnvironment returns the record of the environment in a backup.
func BackupEnvironment(a *backupfile.Reader) (env state.Environment, err error) {
	b, err := newBackupSource(a)
	if err != nil {
		return env, err
	}
	// newBackupSource has checked that the backup has this key.
	kv, _ := findKey(b.keys, keys.Environment)
	return keyspace.Decode[state.Environment](kv)
}

// String returns the time and the sum of the backup, which identify it.
func (b *backupSource) String() string {
	return fmt.Sprintf("the backup of %s, sha256 %s",
		b.header.Time.UTC().Format("2006-01-02T15:04:05Z"), b.archive.Sum[:min(16, len(b.archive.Sum))])
}

// readChunk reads chunk n of a blob. It must be called for the chunks of a blob in order. Since backups
// contain whole blobs, ok is true unless there is an error.
func (b *backupSource) readChunk(_ context.Context, sum string, n int) (value []byte, ok bool, err error) {
	// Open the blob for its first chunk, and read the other chunks from the same reader.
	if b.sum != sum || n == 0 {
		if b.blob != nil {
			b.blob.Close()
		}
		if b.blob, err = b.archive.Open(backupfile.BlobName(sum)); err != nil {
			return nil, false, err
		}
		b.sum = sum
	}

	value = make([]byte, keyspace.ChunkSize)
	read, err := io.ReadFull(b.blob, value)
	// The last chunk can be shorter.
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	return value[:read], true, nil
}

// cutUnit splits a unit's key below the prefix. For the key units/mysql/0/ports and the prefix units/ it
// returns mysql/0 and ports. It returns ok false if the key does not contain the name of a unit after the
// prefix. unit and rest then have no meaning.
func cutUnit(key, prefix string) (unit, rest string, ok bool) {
	afterPrefix, ok := strings.CutPrefix(key, prefix)
	service, afterService, _ := strings.Cut(afterPrefix, "/")
	number, rest, _ := strings.Cut(afterService, "/")
	unit = service + "/" + number
	return unit, rest, ok && charm.IsUnit(unit)
}
