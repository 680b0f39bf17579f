package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bijou/state/osutil"
	"bijou/state/store"
)

// applicationID marks the file as bijou's ("bijo"); file(1) shows it.
const applicationID = 0x62696a6f

// formatVersion is the version of the tables' format in schema.
const formatVersion = 1

// schema creates the tables. Keys are blobs, so that they compare bytewise. An empty value is NULL or an
// empty blob.
//
//go:embed schema.sql
var schema string

// Create atomically creates an empty store at path, which only its owner can read. It returns ErrExists if
// there is a file at path. The store also has the files PATH-wal and PATH-shm of SQLite, and PATH-bell for
// the doorbell.
func Create(ctx context.Context, path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot create store %q: %w", path, err)
		}
	}()

	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(absolute); err == nil {
		return store.ErrExists
	}

	// Only the process with the lock may remove the log of a deleted store. Otherwise it could remove the log of a
	// store that another process has just created.
	lock, err := lockCreation(ctx, absolute)
	if err != nil {
		return err
	}
	defer lock.release()
	// Another process may have created the store before this one got the lock.
	if _, err := os.Lstat(absolute); err == nil {
		return store.ErrExists
	}

	// Processes that were killed may have left drafts. Such a draft can be a second name of a store that is gone.
	dir, name := filepath.Split(absolute)
	draftPrefix := "." + name + ".creating-"
	if err := removeDrafts(dir, draftPrefix); err != nil {
		return err
	}
	draft, err := os.CreateTemp(dir, draftPrefix+"*") // mode 0600
	if err != nil {
		return err
	}
	draft.Close()

	// publishDraft gives the file a second name, which stays.
	defer removeAll(draft.Name(), draft.Name()+"-wal", draft.Name()+"-shm")
	if err := writeSchema(ctx, draft.Name()); err != nil {
		return err
	}
	return publishDraft(draft.Name(), absolute)
}

// removeDrafts removes the files in dir whose names begin with prefix.
func removeDrafts(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// creationLock is the lock of a process that creates a store. It is an empty file beside the store's path, and not the
// directory, which other programs may lock.
type creationLock struct{ file *os.File }

// lockCreation locks the creation of the store at path. While another process has the lock, it waits until ctx is done.
func lockCreation(ctx context.Context, path string) (creationLock, error) {
	dir, name := filepath.Split(path)
	for {
		file, err := osutil.TryLockFile(filepath.Join(dir, "."+name+".creating"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW)
		isTaken := errors.Is(err, osutil.ErrLocked) || errors.Is(err, fs.ErrNotExist)
		if !isTaken {
			return creationLock{file}, err
		}
		// The other process has removed the file at the end, unless the directory is missing.
		if _, err := os.Stat(dir); err != nil {
			return creationLock{}, err
		}

		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return creationLock{}, ctx.Err()
		}
	}
}

// release ends the lock, and removes its file. A file with content is not a lock's, and stays.
func (l creationLock) release() {
	if info, err := l.file.Stat(); err == nil && info.Size() == 0 {
		_ = os.Remove(l.file.Name()) // the user's next process can also lock a file that is left
	}
	l.file.Close()
}

// writeSchema creates the tables of an empty store in the file at path.
func writeSchema(ctx context.Context, path string) error {
	draft, err := openSQL(path, writerPragmas)
	if err != nil {
		return err
	}
	_, err = draft.ExecContext(ctx, fmt.Sprintf(schema, applicationID, formatVersion))
	return errors.Join(storeError(err), draft.Close())
}

// publishDraft makes the finished store in the file draft available at path. It first removes a log, the log's
// index and a mark beside path. It returns ErrExists if there is a file at path.
func publishDraft(draft, path string) error {
	// A deleted store may have left its log, which SQLite would replay into the new store.
	if err := removeAll(path+"-wal", path+"-shm", path+markSuffix); err != nil {
		return err
	}

	// A link, unlike a rename, never replaces a file.
	err := os.Link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		return store.ErrExists
	}
	if err != nil {
		return err
	}

	return osutil.SyncDir(filepath.Dir(path))
}

// removeAll removes the files. It ignores files that do not exist, and stops at the first other error.
func removeAll(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkFormat returns an error unless the file is a store of this format.
func checkFormat(c *conn) error {
	var id, version int64
	if _, err := c.queryRow("PRAGMA application_id", nil, &id); err != nil {
		return err
	}
	if _, err := c.queryRow("PRAGMA user_version", nil, &version); err != nil {
		return err
	}

	if id != applicationID {
		return errors.New("this is not a bijou store")
	}
	if version != formatVersion {
		return fmt.Errorf("the store has format %d, but this bijou supports only format %d", version, formatVersion)
	}

	return nil
}
