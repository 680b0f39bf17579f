package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"bijou/state/store"
)

// storeError returns the store's own error for one of SQLite's, or one that says in plain
// words what it means. Others pass.
func storeError(err error) error {
	if errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return store.ErrClosed
	}
	if resultCode(err) == codes.SQLITE_BUSY {
		return store.AwayError("another process has it locked", err)
	}
	if meaning, ok := errorMeanings[resultCode(err)]; ok {
		return fmt.Errorf("%s: %w", meaning, err)
	}
	return err
}

// errorMeanings are by primary result code.
var errorMeanings = map[int]string{
	codes.SQLITE_FULL:     "the disk is full",
	codes.SQLITE_IOERR:    "the disk answers with errors",
	codes.SQLITE_READONLY: "the file or its folder may not be written",
	codes.SQLITE_CANTOPEN: "the file or its folder cannot be opened",
	codes.SQLITE_NOTADB:   "it is not a bijou store",
	codes.SQLITE_CORRUPT:  "the file is damaged",
}

// resultCode returns the primary result code of an error of SQLite's that storeError has
// not seen yet, or 0.
func resultCode(err error) int {
	if e, ok := err.(*sqlite3.Error); ok {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	var e *sqlite3.Error
	return errors.As(err, &e) && e.Code()&0xff == codes.SQLITE_BUSY
}
