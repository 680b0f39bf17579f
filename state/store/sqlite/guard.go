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

// statFile does what os.Stat does, at lower cost, since each commit calls it several times.
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

func identify(path string) (fileID, error) {
	id, _, err := statFile(path)
	return id, err
}

// findStoreFile returns the store's file with its identity. It returns [store.ErrNoStore] if there is no
// file.
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

func isSame(id fileID, path string) bool {
	now, err := identify(path)
	return err == nil && now == id
}

// guard notices that a store was replaced while this process has it open. This can happen to one of its files
// (the main file, its log, or the log's index), or to the content of the main file.
//
// The last process that closes a store removes the log. As long as this process has an open connection, its
// lock on the main file keeps other processes from doing so: the log can become shorter, but stays the same
// file. After the first poll the guard has its own connection for this purpose. Until then one of the
// readers' connections is open.
//
// The guard compares content in two places. The content of the newest commit, from the log or the main file,
// must descend from the newest commit that this process has seen. The content of only the main file, as of
// its last checkpoint, must descend from its earlier content. The second comparison finds an older copy of
// the main file while the log still hides it.
type guard struct {
	file             storeFile
	logPath, shmPath string
	log, shm         fileID
	readers          *connPool

	reading sync.Mutex // held during checkContent
	anchor  *conn      // nil before the first poll
	looked  fileStamps // as of the last comparison; zero if the content may have changed since then without a new stamp

	mu        sync.Mutex
	seen      position  // the newest commit that this process has seen
	main      position  // the last checkpoint that was seen in the main file
	mainKnown bool      // whether main was read
	mainStamp fileStamp // the main file's stamp when main was read
	found     bool      // whether the store was replaced
	spoilt    bool      // whether the log belongs to a different file than the one at the path
}

// fileStamp changes whenever the file is written, unless the previous write was within stampSettles.
type fileStamp struct {
	size           int64
	changed, wrote unix.Timespec
}

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

func (s fileStamp) isSettled() bool { return time.Since(time.Unix(s.changed.Unix())) > stampSettles }

type fileStamps struct{ file, log fileStamp }

// newGuard returns the guard of a store's files as they are now. It returns ErrStoreGone if they were
// replaced.
func newGuard(ctx context.Context, file storeFile, readers *connPool) (*guard, error) {
	if err := checkMark(file); err != nil {
		return nil, err
	}
	g := &guard{file: file, logPath: file.path + "-wal", shmPath: file.path + "-shm", readers: readers}
	err := readers.withConn(ctx, func(c *conn) error { return g.begin(ctx, c) })
	return g, err
}

// begin reads the position and the identities of the store's files. The first read creates the log if it does not
// exist.
func (g *guard) begin(ctx context.Context, c *conn) (err error) {
	if err := checkFormat(c); err != nil {
		return err
	}
	if g.seen, err = readPosition(ctx, c.sql); err != nil {
		return err
	}

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

// checkFiles returns an ErrStoreGone if one of the files is not the one that was opened.
func (g *guard) checkFiles() error {
	_, err := g.stampFiles()
	return err
}

// stampFiles checks that the store's files are the ones that were opened, and returns the stamps of the file
// and of its log. It returns ErrStoreGone if the store was removed, and marks it as replaced if one of its
// files was replaced.
func (g *guard) stampFiles() (fileStamps, error) {
	log, logStat, err := statFile(g.logPath)
	sameLog := err == nil && log == g.log
	sameShm := isSame(g.shm, g.shmPath)
	// A removal of the store begins with the main file. So this file is checked last.
	now, stat, err := statFile(g.file.path)

	switch {
	case err != nil:
		return fileStamps{}, store.ErrStoreGone

	case now != g.file.id:
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

	return fileStamps{stampOf(stat), stampOf(logStat)}, nil
}

// admit checks, during a write transaction, that the newest commit descends from the content that this
// process has seen.
func (g *guard) admit(ctx context.Context, newest position) error {
	now, err := g.stampFiles()
	if err != nil {
		return err
	}
	if err := g.advance(newest, g.lastSeen()); err != nil {
		return err
	}
	if known, read := g.lastStamp(); !known || read == now.file {
		return nil
	}

	return g.checkMain(ctx, now.file)
}

// committed records the position of the commit that was just made.
func (g *guard) committed(newest position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = newest
}

// checkContent compares the store's current content with the content that the guard has seen. It returns
// ErrStoreGone if the store was replaced. After any other error it is unknown whether the store was replaced.
func (g *guard) checkContent(ctx context.Context) error {
	g.reading.Lock()
	defer g.reading.Unlock()

	now, err := g.stampFiles()
	if err != nil {
		return err
	}
	if now == g.looked {
		return nil
	}

	compared, err := g.compareContent(ctx, now)
	if err != nil {
		return err
	}

	g.looked = fileStamps{}
	if compared && now.file.isSettled() && now.log.isSettled() {
		g.looked = now
	}
	return nil
}

// compareContent checks that the file's content descends from all content that this process has seen. It
// returns an ErrStoreGone if it does not. compared is false if it could not compare everything.
func (g *guard) compareContent(ctx context.Context, now fileStamps) (compared bool, err error) {
	if g.anchor == nil {
		if g.anchor, err = newConn(ctx, g.readers.sql); err != nil {
			g.anchor = nil
			return false, nil
		}
	}
	if err := g.checkMain(ctx, now.file); err != nil {
		return false, err
	}

	// lastSeen must come first, since the read must find all content that was seen before it began.
	before := g.lastSeen()
	main := g.lastMain()
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
	case !newest.descendsFrom(main):
		return false, g.contentReplaced()
	}

	if err := g.advance(newest, before); err != nil {
		return false, err
	}

	known, read := g.lastStamp()
	return known && read == now.file, nil
}

// advance records found as a position that was seen. It returns an ErrStoreGone if found does not descend
// from the given earlier position.
func (g *guard) advance(found, before position) error {
	if !found.descendsFrom(before) {
		return g.contentReplaced()
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	if found.descendsFrom(g.seen) {
		g.seen = found
	}
	return nil
}

// The guard reads the main file mainReads times, with pauses, before it decides that the content was replaced. A
// read during a checkpoint can find half of a page.
const (
	mainReads      = 4
	mainReadsPause = 5 * time.Millisecond
)

// checkMain compares the content of the main file, which has the given stamp. It returns an ErrStoreGone if the
// content was replaced.
func (g *guard) checkMain(ctx context.Context, stamp fileStamp) error {
	for range mainReads {
		found, err := readMainFile(ctx, g.file.path)
		switch {
		case err != nil && !errors.Is(err, errNoPosition):
			// The next poll reads the file again.
			return nil
		case err == nil && g.carryOnMain(found, stamp):
			return nil
		}

		// Before the first reading, there is no position to compare with.
		if known, _ := g.lastStamp(); !known {
			return nil
		}
		time.Sleep(mainReadsPause)
	}

	return g.contentReplaced()
}

// carryOnMain records the position and the stamp of the main file. It returns false, and records nothing, if the
// position does not descend from the recorded position.
func (g *guard) carryOnMain(found position, stamp fileStamp) bool {
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

func (g *guard) lastSeen() position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

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

// replaced returns the ErrStoreGone of a store that was replaced. It leaves a mark beside the store, so that
// no process opens the store before an operator has decided.
func (g *guard) replaced(what string, main mainFile) error {
	spoilt := main == otherMainFile
	g.mu.Lock()
	g.found = true
	g.spoilt = g.spoilt || spoilt
	g.mu.Unlock()

	r := &store.Replaced{What: what, Remove: []string{g.file.path + markSuffix}}
	if spoilt {
		r.Remove = append(r.Remove, g.logPath, g.shmPath)
	}
	if err := leaveMark(g.file.path, r); err != nil {
		slog.Warn("cannot mark a store that was replaced", "store", g.file.path, "error", err)
	}
	return r
}

// mustNotWriteBack reports whether this process's log belongs to a store that was replaced. The last connection
// to close would write that log into the new file. A log that was only removed still belongs to the main file, so
// writing it back does no harm.
func (g *guard) mustNotWriteBack() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.found {
		return false
	}
	now, err := identify(g.logPath)
	isOtherLog := err == nil && now != g.log
	return g.spoilt || isOtherLog
}

// close closes the guard's anchor. The caller must have ended all checks.
func (g *guard) close() {
	if g.anchor != nil {
		g.anchor.close()
	}
}
