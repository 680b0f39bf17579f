package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"

	codes "modernc.org/sqlite/lib"
)

// rememberedIDs is how many ids of the newest commits a generation has. A process that has missed more
// commits can compare only the counter and the revision.
const rememberedIDs = 32

// generation is stored in the column generation of the table head. Each commit increments its counter and adds a
// random id. So a process can recognize content that does not descend from the content that it has seen: an older
// copy of the store, or a different store.
//
// Binaries that are older than the column do not change it. Their commits only increment the revision.
type generation struct {
	counter int64                 // the number of commits; 0 if no commit has written a generation
	ids     [rememberedIDs]uint64 // ids of the newest commits; commit n's is at index n modulo rememberedIDs
}

const generationSize = 8 * (1 + rememberedIDs)

// parseGeneration parses the generation in a store. An empty blob is the zero generation.
func parseGeneration(blob []byte) (g generation, err error) {
	if len(blob) == 0 {
		return generation{}, nil
	}
	if len(blob) != generationSize {
		return generation{}, fmt.Errorf("the generation has %d bytes, not %d", len(blob), generationSize)
	}

	g.counter = int64(binary.LittleEndian.Uint64(blob))
	for i := range g.ids {
		g.ids[i] = binary.LittleEndian.Uint64(blob[8*(i+1):])
	}
	return g, nil
}

// bytes returns the generation in the form that parseGeneration parses.
func (g generation) bytes() []byte {
	blob := make([]byte, 0, generationSize)
	blob = binary.LittleEndian.AppendUint64(blob, uint64(g.counter))
	for _, id := range g.ids {
		blob = binary.LittleEndian.AppendUint64(blob, id)
	}
	return blob
}

// next returns the generation of the commit after this one.
func (g generation) next() generation {
	g.counter++
	g.ids[g.counter%rememberedIDs] = rand.Uint64()
	return g
}

// position identifies a version of the store's content.
type position struct {
	revision   int64
	generation generation
}

// descendsFrom reports whether the content at p can be the content at earlier after further commits, or the
// same content. For a position from a different history, it can also return true if p is ahead by rememberedIDs
// commits or more, or if the history of earlier differs only in commits of older binaries, which have no ids.
func (p position) descendsFrom(earlier position) bool {
	if p.revision < earlier.revision || p.generation.counter < earlier.generation.counter {
		return false
	}
	if p.generation.counter-earlier.generation.counter >= rememberedIDs {
		// p no longer remembers the id of the commit at earlier.
		return true
	}

	slot := earlier.generation.counter % rememberedIDs
	return p.generation.ids[slot] == earlier.generation.ids[slot]
}

// addGenerationColumn adds the column generation to the table head of a store that an older binary has created.
// It does nothing if the column exists. An older binary may have the store open now, and ignores the column.
func (t *writeTxn) addGenerationColumn() error {
	exists, err := t.c.queryRow("SELECT 1 FROM pragma_table_info('head') WHERE name = 'generation'", nil, new(int))
	if err != nil {
		return err
	}
	if exists {
		return nil
	}
	_, err = t.c.exec("ALTER TABLE head ADD COLUMN generation BLOB")
	return err
}

// errNoPosition is returned if the file's content is not that of a store.
var errNoPosition = errors.New("the table head is missing")

// readPosition reads the position from the table head, which may lack the column generation. It returns
// errNoPosition if the file's content is not that of a store. After any other error, the content may be that
// of a store or not.
func readPosition(ctx context.Context, c *sql.Conn) (p position, err error) {
	rows, err := c.QueryContext(ctx, "SELECT * FROM head WHERE id = 1")
	if err != nil {
		return position{}, classifyReadError(err)
	}
	defer rows.Close()

	columns, err := rows.Columns()
	if err != nil {
		return position{}, classifyReadError(err)
	}

	var id, trimmed int64
	var blob []byte
	values := []any{&id, &p.revision, &trimmed, &blob}
	// A table that an older binary has created has only the first three columns.
	if len(columns) < 3 || len(columns) > len(values) {
		return position{}, fmt.Errorf("the table head has %d columns", len(columns))
	}

	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return position{}, classifyReadError(err)
		}
		// This can happen during the checkpoint of a vacuum.
		return position{}, errors.New("the table head has no row")
	}

	if err := rows.Scan(values[:len(columns)]...); err != nil {
		return position{}, classifyReadError(err)
	}
	p.generation, err = parseGeneration(blob)
	return p, err
}

// classifyReadError returns an error that wraps errNoPosition if err has the code SQLITE_ERROR, as for a missing
// table, or SQLITE_NOTADB, for a file that is not a database. It translates other errors as storeError does.
func classifyReadError(err error) error {
	switch resultCode(err) {
	case codes.SQLITE_ERROR, codes.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", errNoPosition, err)
	}
	return storeError(err)
}

// readMainFile reads the position of the last checkpoint from the store's main file, without its log. With
// the option "immutable" SQLite reads the file without locks. Only SQLite may open the file: if this process
// closed another descriptor of the file, it would lose all of SQLite's locks.
func readMainFile(ctx context.Context, path string) (p position, err error) {
	query := url.Values{"mode": {"ro"}, "immutable": {"1"}}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	main, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return position{}, err
	}
	defer main.Close()

	c, err := main.Conn(ctx)
	if err != nil {
		return position{}, classifyReadError(err)
	}
	defer c.Close()
	return readPosition(ctx, c)
}
