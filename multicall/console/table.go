package console

import (
	"io"
	"strings"
	"unicode/utf8"

	"bijou/state/sanitize"
)

// Table is aligned columns under a heading; a row may have a colour.
type Table struct {
	heading []string
	rows    []row
}

type row struct {
	cells  []string
	colour Colour // "": none
}

// NewTable returns a table without rows.
func NewTable(heading ...string) *Table { return &Table{heading: heading} }

// Add adds a row; colour "" is none.
func (t *Table) Add(colour Colour, cells ...string) {
	plain := make([]string, len(cells))
	for i, cell := range cells {
		plain[i] = sanitize.Escape(cell)
	}
	t.rows = append(t.rows, row{cells: plain, colour: colour})
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Write prints the table; nothing if it has no rows.
func (t *Table) Write(w io.Writer, coloured bool) error {
	if t.Empty() {
		return nil
	}
	widths := t.columnWidths()
	var b strings.Builder
	writeRow(&b, row{cells: t.heading, colour: Bold}, widths, coloured)
	for _, r := range t.rows {
		writeRow(&b, r, widths, coloured)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) columnWidths() []int {
	widths := make([]int, len(t.heading))
	for _, r := range append([]row{{cells: t.heading}}, t.rows...) {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// writeRow puts the colour around the whole line, so that it does not count in the widths.
func writeRow(b *strings.Builder, r row, widths []int, coloured bool) {
	var line strings.Builder
	for i, cell := range r.cells {
		line.WriteString(cell)
		line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	text := strings.TrimRight(line.String(), " ")
	if coloured && r.colour != "" {
		text = Paint(r.colour, text)
	}
	b.WriteString(text + "\n")
}
