package charm

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
)

// maxRevision is the greatest that JSON's numbers and an int hold: old charms have dates
// for revisions, to the minute.
const maxRevision = min(math.MaxInt, 1<<53-1)

func parseRevision(data []byte) (int, error) {
	text := strings.TrimSpace(string(data))
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return n, checkRevision(n)
}

func checkRevision(n int) error {
	if n < 0 || n > maxRevision {
		return fmt.Errorf("revision %d is out of range: want 0 to %d", n, maxRevision)
	}
	return nil
}

func revisionText(n int) []byte { return []byte(strconv.Itoa(n) + "\n") }

// WriteRevision makes n the revision of the charm in dir, atomically. In a
// directory that cannot be written it fails, and the caller sets
// ArchiveOptions.Revision instead.
func WriteRevision(dir string, n int) error {
	if err := checkRevision(n); err != nil {
		return err
	}
	name := filepath.Join(dir, "revision")
	if err := renameio.WriteFile(name, revisionText(n), 0o644); err != nil {
		return fmt.Errorf("cannot write revision of charm %q: %w", dir, err)
	}
	return nil
}
