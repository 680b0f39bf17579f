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

// rememberedIDs is how many of the newest commits' ids a generation has. A process that has missed
// more than that at once goes by the counter and the revision alone.
const rememberedIDs = 32

// generation is in the column of that name of the table head. Each commit counts it on and puts a
// random id into it, so that a process can tell content that descends from what it has seen from
// content that does not: an older copy, or another one's.
//
// Binaries from before the column leave it as it is. Their commits count the revision on, no more.
type generation struct {
	counter int64                 // 0: no commit has written one
	ids     [rememberedIDs]uint64 // of the newest commits; that of commit n is at n modulo rememberedIDs
}

const generationSize = 8 * (1 + rememberedIDs)

// parseGeneration parses the generation in a store. An empty blob is the zero generation.
func parseGeneration(blob []byte) (g generation, err error) {
	if len(blob) == 0 {
		return generation{}, nil
	}
	if len(blob) != generationSize {
		return generation{}, fmt.Errorf("its generation has %d bytes, not %d", len(blob), generationSize)
	}

	g.counter = int64(binary.LittleEndian.Uint64(blob))
	for i := range g.ids {
		g.ids[i] = binary.LittleEndian.Uint64(blob[8*(i+1):])
	}
	return g, nil
}

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

// position is how far some content of the store has come.
type position struct {
	revision   int64
	generation generation
}

// descendsFrom reports whether commits can have made the content at p from the content at q. It errs only
// about content of a different history that is ahead of q by more commits than a generation remembers.
func (p position) descendsFrom(q position) bool {
	if p.revision < q.revision || p.generation.counter < q.generation.counter {
		return false
	}
	if p.generation.counter-q.generation.counter >= rememberedIDs {
		return true
	}

	slot := q.generation.counter % rememberedIDs
	return p.generation.ids[slot] == q.generation.ids[slot]
}

// addGenerationColumn adds the column to the table of a store that a former binary has made. To
// that binary, which may have the store open now, it means nothing.
func (t *writeTxn) addGenerationColumn() error {
	there, err := t.c.queryRow("SELECT 1 FROM pragma_table_info('head') WHERE name = 'generation'", nil, new(int))
	if err != nil || there {
		return err
	}
	_, err = t.c.exec("ALTER TABLE head ADD COLUMN generation BLOB")
	return err
}

// errNoPosition: what was read is no store that has a head.
var errNoPosition = errors.New("it has no head")

// readPosition reads the head, whether it has a generation or not. errNoPosition: the content is
// that of no store at all. Other errors say nothing about the content.
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
	into := []any{&id, &p.revision, &trimmed, &blob}
	if len(columns) > len(into) || len(columns) < 3 {
		return position{}, fmt.Errorf("its head has %d columns", len(columns))
	}

	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return position{}, classifyReadError(err)
		}
		return position{}, errors.New("its head has no row") // as beside the checkpoint of a vacuum
	}

	if err := rows.Scan(into[:len(columns)]...); err != nil {
		return position{}, classifyReadError(err)
	}
	p.generation, err = parseGeneration(blob)
	return p, err
}

func classifyReadError(err error) error {
	switch resultCode(err) {
	case codes.SQLITE_ERROR, codes.SQLITE_NOTADB: // there is no such table, or no database
		return fmt.Errorf("%w: %w", errNoPosition, err)
	}
	return storeError(err)
}

// readMainFile reads the position in the store's file alone, without its log: the position of the last
// checkpoint. With "immutable" SQLite reads the file without locks. Another way to read it would not do:
// closing any other descriptor of the file would drop all of SQLite's locks.
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
