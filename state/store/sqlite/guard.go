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

// storeFile is a store's absolute path, and which file was there when it was opened.
//
// The file itself is never opened here: closing any descriptor of it would drop all
// of SQLite's POSIX locks in this process.
type storeFile struct {
	path string
	id   fileID
}

// fileID tells a file from all others that there are at the same time.
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

// findStoreFile returns the store's file with its identity. It returns [store.ErrNoStore] if there is none.
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
		return storeFile{}, errors.New("it is not a regular file")
	}

	err = unix.Access(path, unix.R_OK|unix.W_OK)
	if err != nil {
		return storeFile{path, id}, fmt.Errorf("it cannot be read and written: %w", err)
	}

	return storeFile{path, id}, nil
}

// isUnchanged reports whether the path still leads to the file. As long as SQLite has that
// open, no other file can get its inode number. Its link count is 0 as soon as no path
// leads to it, so that looking at the path is enough.
func (f storeFile) isUnchanged() bool { return isSame(f.id, f.path) }

func isSame(id fileID, path string) bool {
	now, err := identify(path)
	return err == nil && now == id
}

// guard notices that a store was replaced under a process that has it open: the file, its log
// or the log's index by others, or what the file holds by other content.
//
// As long as a connection is open, its lock on the file keeps every other process from removing the
// log, as the last one to close the store does. The log can become shorter, but stays the same file.
// From the first poll on the guard has a connection of its own for that; until then it is one of the
// readers'.
//
// Content is compared in two places. What the newest commit has written, from the log or from the
// file, descends from the newest commit that this process has seen; what the file itself holds, which
// checkpoints carry on, descends from what it held. The second finds an older copy while the log still
// covers it.
type guard struct {
	file             storeFile
	logPath, shmPath string
	log, shm         fileID
	readers          *connPool

	reading sync.Mutex // one reads at a time
	anchor  *conn      // nil before the first poll
	looked  fileStamps // when the content was compared last; zero if it may have changed in the same tick

	mu        sync.Mutex
	seen      position // of the newest commit that this process has seen
	main      position // that the file itself was seen with
	mainKnown bool
	mainStamp fileStamp // of the file when main was read
	found     bool      // that the store was replaced
	spoilt    bool      // the log does not belong to the file at the path any more
}

// fileStamp changes whenever the file is written.
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

// stampSettles is longer than what a file system's clock may stand still. Within it a file can be
// written again without another stamp.
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

// begin reads first: from then on the log is there.
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

// stampFiles checks that the store's files are the ones that were opened, and returns the stamps of the
// file and of its log. It returns ErrStoreGone if the store was removed, and marks it as replaced if a file
// was.
func (g *guard) stampFiles() (fileStamps, error) {
	log, logStat, err := statFile(g.logPath)
	sameLog := err == nil && log == g.log
	sameShm := isSame(g.shm, g.shmPath)
	now, stat, err := statFile(g.file.path) // last: who removes a store begins with it

	switch {
	case err != nil:
		return fileStamps{}, store.ErrStoreGone

	case now != g.file.id:
		if !sameLog {
			return fileStamps{}, store.ErrStoreGone // a store that was made anew
		}

		return fileStamps{}, g.replaced(
			"another file was put in the place of "+g.file.path+" while a process had it open",
			true,
		)

	case !sameLog:
		return fileStamps{}, g.replaced(
			"the file "+g.logPath+" was removed or replaced while a process had the store open",
			false,
		)

	case !sameShm:
		return fileStamps{}, g.replaced(
			"the file "+g.shmPath+" was removed or replaced while a process had the store open",
			false,
		)
	}

	return fileStamps{stampOf(stat), stampOf(logStat)}, nil
}

// admit checks, in a transaction that writes, the newest commit before it.
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

// committed notes the commit that was just made.
func (g *guard) committed(newest position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = newest
}

// checkContent compares the store's present content with the content that the guard has seen. It returns
// ErrStoreGone if the store was replaced; its other errors do not tell.
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

	// The order matters: the read must find all content that was seen before it began.
	before := g.lastSeen()
	main := g.lastMain()
	if _, err := g.anchor.exec("PRAGMA shrink_memory"); err != nil { // the read is not to find pages in its cache
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

// advance remembers the position found. It returns an ErrStoreGone unless that descends from the position
// before.
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

// How often the file is read again before it is taken for another's: a read beside a checkpoint
// can find half of a page.
const (
	mainReads      = 4
	mainReadsPause = 5 * time.Millisecond
)

// checkMain compares the content of the file itself, which has that stamp.
func (g *guard) checkMain(ctx context.Context, stamp fileStamp) error {
	for range mainReads {
		found, err := readMainFile(ctx, g.file.path)
		switch {
		case err != nil && !errors.Is(err, errNoPosition):
			return nil // the next poll reads it again

		case err == nil && g.carryOnMain(found, stamp):
			return nil
		}

		if known, _ := g.lastStamp(); !known {
			return nil
		}
		time.Sleep(mainReadsPause)
	}

	return g.contentReplaced()
}

// carryOnMain remembers the position of the main file, with its stamp. It returns false if that does not
// descend from the position that it remembers so far.
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

// lastStamp returns the stamp of the file when it was last read, if it was.
func (g *guard) lastStamp() (known bool, stamp fileStamp) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mainKnown, g.mainStamp
}

func (g *guard) contentReplaced() error {
	return g.replaced(
		"the content of "+g.file.path+" was replaced by other content while a process had it open",
		true,
	)
}

// replaced returns the ErrStoreGone of a store that was replaced. It leaves a mark beside the store, so that
// nobody opens it before an operator has looked. spoilt says that the log does not belong to the file at the
// path now.
func (g *guard) replaced(what string, spoilt bool) error {
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

// mustNotWriteBack reports whether this process's log belongs to a store that was replaced. The last
// connection to close would write that log into the new file. If the log was removed and not made again, it
// belongs to the file, and nothing is lost by writing.
func (g *guard) mustNotWriteBack() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.found {
		return false
	}
	now, err := identify(g.logPath)
	return g.spoilt || err == nil && now != g.log
}

// close closes the guard's anchor. The caller must have ended all checks.
func (g *guard) close() {
	if g.anchor != nil {
		g.anchor.close()
	}
}
