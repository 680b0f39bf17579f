package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/store"
)

// storeFile is a store's absolute path, and the identity of the file at that path when the store was opened.
//
// Code outside SQLite never opens the file: closing any descriptor of it would drop all of SQLite's POSIX
// locks in this process.
type storeFile struct {
	path string
	id   fileID
}

// fileID identifies a file among all files that exist at the same time.
type fileID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// statFile returns the identity and the state of the file at path. Each commit calls it several times, so it
// uses the system call, which costs less than os.Stat. Its errors are those of os.Stat.
func statFile(path string) (id fileID, stat unix.Stat_t, err error) {
	for {
		err := unix.Stat(path, &stat)
		if err == nil {
			return fileID{uint64(stat.Dev), stat.Ino}, stat, nil
		}
		if err != unix.EINTR {
			return fileID{}, stat, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// identify returns the identity of the file at path.
func identify(path string) (fileID, error) {
	id, _, err := statFile(path)
	return id, err
}

// findStoreFile returns the store's file with its identity. It returns [store.ErrNoStore] if there is no
// file, and a different error if the file is not regular, or if this process has no right to read and write
// it.
func findStoreFile(path string) (storeFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return storeFile{}, err
	}
	id, stat, err := statFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return storeFile{}, store.ErrNoStore
	}
	if err != nil {
		return storeFile{}, err
	}

	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return storeFile{}, errors.New("this is not a regular file")
	}
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return storeFile{}, fmt.Errorf("the file cannot be read and written: %w", err)
	}

	return storeFile{path, id}, nil
}

// isUnchanged reports whether the path still leads to the file. As long as SQLite has the file open, no other
// file can get its inode number.
func (f storeFile) isUnchanged() bool { return isSame(f.id, f.path) }

// isSame reports whether the file at path has the identity.
func isSame(id fileID, path string) bool {
	current, err := identify(path)
	return err == nil && current == id
}

// guard notices that a store was replaced while this process has it open. This can happen to one of its files
// (the main file, its log, or the log's index), or to the content of the main file.
//
// The last process that closes a store removes the log. As long as this process has an open connection, its
// lock on the main file prevents that: the log can become shorter, but stays the same file. After the first
// poll the guard has its own connection for this purpose. Until then one of the readers' connections is open.
//
// The guard compares content in two places. The content of the newest commit, from the log or the main file,
// must descend from the newest commit that this process has seen. The content of only the main file, as of
// its last checkpoint, must descend from its earlier content. The second comparison finds an older copy of
// the main file while the log still hides it.
type guard struct {
	file             storeFile
	logPath, shmPath string
	log, shm         fileID // when the store was opened
	readers          *connPool

	reading  sync.Mutex // held during checkContent
	anchor   *conn      // the guard's own connection; nil before the first poll
	compared fileStamps // at the last comparison; zero if the content may have changed since then without a new stamp

	mu          sync.Mutex
	seen        position  // the newest commit that this process has seen
	main        position  // the last checkpoint that was seen in the main file
	mainKnown   bool      // whether main was read
	mainStamp   fileStamp // the main file's stamp when main was read
	wasReplaced bool      // whether the store was replaced
	logIsAlien  bool      // whether the log belongs to a different main file than the one at the path
}

// fileStamp changes whenever the file is written, unless the previous write was within stampSettles.
type fileStamp struct {
	size           int64
	changed, wrote unix.Timespec
}

// stampOf returns the stamp of a file with this state.
func stampOf(stat unix.Stat_t) fileStamp {
	return fileStamp{
		size:    stat.Size,
		changed: stat.Ctim,
		wrote:   stat.Mtim,
	}
}

// stampSettles is longer than the resolution of a file system's clock. A file that is written twice within
// stampSettles can keep the same stamp.
const stampSettles = 100 * time.Millisecond

// isSettled reports whether a further write will change the stamp.
func (s fileStamp) isSettled() bool { return time.Since(time.Unix(s.changed.Unix())) > stampSettles }

// fileStamps has the stamps of the store's main file and its log.
type fileStamps struct{ main, log fileStamp }

// newGuard returns the guard of a store's files as they are now. It returns ErrStoreGone if a mark says that
// the store was replaced, or if its files are replaced at the same time. It returns a different error if the
// file is not a store of the known format.
func newGuard(ctx context.Context, file storeFile, readers *connPool) (*guard, error) {
	if err := checkMark(file); err != nil {
		return nil, err
	}
	g := &guard{file: file, logPath: file.path + "-wal", shmPath: file.path + "-shm", readers: readers}
	err := readers.withConn(ctx, func(c *conn) error { return g.begin(ctx, c) })
	return g, err
}

// begin checks the format of the store, and reads the position of its content and the identities of the log and
// the log's index. Its first query makes SQLite create these two files if they do not exist. begin returns
// ErrStoreGone if the store is removed or replaced at the same time.
func (g *guard) begin(ctx context.Context, c *conn) (err error) {
	if err := checkFormat(c); err != nil {
		return err
	}
	if g.seen, err = readPosition(ctx, c.sql); err != nil {
		return err
	}

	// After the first query both files exist, unless the store was removed in the meantime.
	if g.log, err = identify(g.logPath); err != nil {
		return store.ErrStoreGone
	}
	if g.shm, err = identify(g.shmPath); err != nil {
		return store.ErrStoreGone
	}
	if !g.file.isUnchanged() {
		return store.ErrStoreGone
	}

	return nil
}

// checkFiles returns ErrStoreGone if one of the files is not the one that was opened.
func (g *guard) checkFiles() error {
	_, err := g.stampFiles()
	return err
}

// stampFiles checks that the store's files are the ones that were opened, and returns the stamps of the main
// file and the log. It returns ErrStoreGone if a file is missing or is a different one. In that case it also
// leaves the mark that keeps other processes from opening the store, unless the main file is missing, or the
// store was removed and created again.
func (g *guard) stampFiles() (fileStamps, error) {
	// A log that cannot be examined counts as a different one.
	log, logStat, err := statFile(g.logPath)
	sameLog := err == nil && log == g.log
	sameShm := isSame(g.shm, g.shmPath)
	// Remove deletes the main file first. So check this file last: if Remove has deleted another file, the main
	// file is already missing.
	main, mainStat, err := statFile(g.file.path)

	switch {
	case err != nil:
		return fileStamps{}, store.ErrStoreGone

	case main != g.file.id:
		if !sameLog {
			// The store was removed and created again.
			return fileStamps{}, store.ErrStoreGone
		}

		return fileStamps{}, g.replaced(
			"a different file replaced "+g.file.path+" while a process had it open",
			otherMainFile,
		)

	case !sameLog:
		return fileStamps{}, g.replaced(
			"the file "+g.logPath+" was removed or replaced while a process had the store open",
			sameMainFile,
		)

	case !sameShm:
		return fileStamps{}, g.replaced(
			"the file "+g.shmPath+" was removed or replaced while a process had the store open",
			sameMainFile,
		)
	}

	return fileStamps{main: stampOf(mainStat), log: stampOf(logStat)}, nil
}

// admit checks, during a write transaction, that the store's files are the ones that were opened, and that
// their content descends from the content that this process has seen. newest is the position of the newest
// commit, which admit records as seen. admit returns ErrStoreGone if the store was removed or replaced. The
// transaction must then write nothing.
func (g *guard) admit(ctx context.Context, newest position) error {
	current, err := g.stampFiles()
	if err != nil {
		return err
	}
	if err := g.advance(newest, g.lastSeen()); err != nil {
		return err
	}

	// Before the first read of the main file, there is nothing to compare it with. After that, read it only if it
	// was written since the last read.
	known, lastStamp := g.lastStamp()
	if !known || lastStamp == current.main {
		return nil
	}
	return g.checkMain(ctx, current.main)
}

// committed records the position of the commit that was just made.
func (g *guard) committed(newest position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = newest
}

// checkContent compares the store's current content with the content that the guard has seen. It returns
// ErrStoreGone if the store was removed or replaced. If it cannot compare the content, for example after an
// error of the disk, it returns nil, and the next call compares again.
func (g *guard) checkContent(ctx context.Context) error {
	g.reading.Lock()
	defer g.reading.Unlock()

	current, err := g.stampFiles()
	if err != nil {
		return err
	}
	if current == g.compared {
		return nil
	}

	complete, err := g.compareContent(ctx, current)
	if err != nil {
		return err
	}

	// While a stamp is not settled, a later write may not change it. So the next check must compare again.
	g.compared = fileStamps{}
	if complete && current.main.isSettled() && current.log.isSettled() {
		g.compared = current
	}
	return nil
}

// compareContent checks that the store's content descends from all content that this process has seen. It
// returns ErrStoreGone if the content was replaced. complete is false if it could not compare everything, for
// example after an error of the disk. The next poll then tries again.
func (g *guard) compareContent(ctx context.Context, current fileStamps) (complete bool, err error) {
	if g.anchor == nil {
		// The guard keeps this connection for all later comparisons.
		if g.anchor, err = newConn(ctx, g.readers.sql); err != nil {
			g.anchor = nil
			return false, nil
		}
	}
	if err := g.checkMain(ctx, current.main); err != nil {
		return false, err
	}

	// Get these positions before the read, since the read must find all content that was seen before it began.
	seenBefore := g.lastSeen()
	mainBefore := g.lastMain()
	// The read must come from the files, not from the connection's cache.
	if _, err := g.anchor.exec("PRAGMA shrink_memory"); err != nil {
		return false, nil
	}

	newest, err := readPosition(ctx, g.anchor.sql)
	switch {
	case errors.Is(err, errNoPosition):
		return false, g.contentReplaced()
	case err != nil:
		return false, nil
	case !newest.descendsFrom(mainBefore):
		return false, g.contentReplaced()
	}

	if err := g.advance(newest, seenBefore); err != nil {
		return false, err
	}

	// checkMain records the stamp only if it could read the main file.
	known, stamp := g.lastStamp()
	return known && stamp == current.main, nil
}

// advance records found as the newest position that was seen. It returns ErrStoreGone if found does not descend
// from earlier, a position that was seen before found was read.
func (g *guard) advance(found, earlier position) error {
	if !found.descendsFrom(earlier) {
		return g.contentReplaced()
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	// Another goroutine may have seen a newer position in the meantime.
	if found.descendsFrom(g.seen) {
		g.seen = found
	}
	return nil
}

// The guard reads the main file mainReads times, with pauses, before it decides that the content was
// replaced. A read during a checkpoint can find a page that is only half written.
const (
	mainReads      = 4
	mainReadsPause = 5 * time.Millisecond
)

// checkMain reads the main file, checks that its content descends from the content at the previous successful
// read, and records its position and stamp. stamp is the file's current stamp. checkMain returns ErrStoreGone if
// the content was replaced. It returns nil if it cannot read the file, or if no earlier read was successful.
func (g *guard) checkMain(ctx context.Context, stamp fileStamp) error {
	for range mainReads {
		found, err := readMainFile(ctx, g.file.path)
		if err != nil && !errors.Is(err, errNoPosition) {
			// The next poll reads the file again.
			return nil
		}
		// recordMain refuses a position that does not descend from the recorded one.
		if err == nil && g.recordMain(found, stamp) {
			return nil
		}

		// Before the first successful read, there is no position to compare with.
		if known, _ := g.lastStamp(); !known {
			return nil
		}
		// A checkpoint may have been writing the file during the read, so read again.
		time.Sleep(mainReadsPause)
	}

	return g.contentReplaced()
}

// recordMain records the position and the stamp of the main file. If the position does not descend from the
// recorded position, it records nothing and returns false.
func (g *guard) recordMain(found position, stamp fileStamp) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mainKnown && !found.descendsFrom(g.main) {
		return false
	}

	g.main = found
	g.mainKnown = true
	g.mainStamp = stamp
	return true
}

// lastSeen returns the newest position that this process has seen.
func (g *guard) lastSeen() position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

// lastMain returns the position in the main file when it was last read.
func (g *guard) lastMain() position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.main
}

// lastStamp returns the stamp of the main file when it was last read. It returns known false if the main file
// was not read yet.
func (g *guard) lastStamp() (known bool, stamp fileStamp) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mainKnown, g.mainStamp
}

// contentReplaced records that the content was replaced, and returns the error about it.
func (g *guard) contentReplaced() error {
	return g.replaced(
		"the content of "+g.file.path+" was replaced while a process had the file open",
		otherMainFile,
	)
}

// mainFile says whether the file at the store's path is still the one that the log belongs to.
type mainFile int

const (
	sameMainFile mainFile = iota
	otherMainFile
)

// replaced records that the store was replaced, and returns a [*store.Replaced] with the given sentence. It
// leaves a mark beside the store, so that no process opens the store before an operator has decided which
// content to keep. If it cannot leave the mark, it logs a warning.
func (g *guard) replaced(what string, main mainFile) error {
	logIsAlien := main == otherMainFile
	g.mu.Lock()
	g.wasReplaced = true
	g.logIsAlien = g.logIsAlien || logIsAlien
	g.mu.Unlock()

	r := &store.Replaced{What: what, Remove: []string{g.file.path + markSuffix}}
	if logIsAlien {
		// This log must not be used with the present main file.
		r.Remove = append(r.Remove, g.logPath, g.shmPath)
	}
	if err := leaveMark(g.file.path, r); err != nil {
		slog.Warn("cannot mark a store that was replaced", "store", g.file.path, "error", err)
	}
	return r
}

// mustNotWriteBack reports whether this process must not close its connections. The last connection to close
// writes its log into the main file. That would damage the store if the log belongs to a different main file, or
// if a different log has replaced it. A log that was only removed still belongs to the main file, so that writing
// it back is harmless.
func (g *guard) mustNotWriteBack() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	// A store that was removed and created again does not count as replaced: see stampFiles. Its old files, which
	// the connections have open, still belong together.
	if !g.wasReplaced {
		return false
	}

	current, err := identify(g.logPath)
	isOtherLog := err == nil && current != g.log
	return g.logIsAlien || isOtherLog
}

// close closes the guard's anchor. The caller must have ended all checks.
func (g *guard) close() {
	if g.anchor != nil {
		g.anchor.close()
	}
}
