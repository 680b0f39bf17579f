package console

import (
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"bijou/state/text"
)

// Table has aligned columns under a heading. Rows may have colours.
type Table struct {
	heading []string
	rows    []row
	painted string          // the heading of the only column that has the rows' colours, or "" for all columns
	spare   map[string]bool // headings of columns that can be left out
}

type row struct {
	cells  []string
	colour Colour
	tail   string // follows the last cell if there is room
	whole  bool   // the last cell is not cut to fit beside the other cells
}

// NewTable returns a table without rows.
func NewTable(heading ...string) *Table { return &Table{heading: heading, spare: map[string]bool{}} }

// PaintOnly limits the rows' colours to the cells of one column.
func (t *Table) PaintOnly(heading string) { t.painted = heading }

// Spare names columns that can be left out. Such a column is left out if it is empty in all rows. On a terminal, further
// spare columns are left out, from right to left, until the table's last column has enough space.
func (t *Table) Spare(headings ...string) {
	for _, heading := range headings {
		t.spare[heading] = true
	}
}

// Add adds a row.
func (t *Table) Add(colour Colour, cells ...string) {
	t.rows = append(t.rows, row{cells: escapeAll(cells), colour: colour})
}

// NoTail is the tail of a row of AddWhole that has none.
const NoTail = ""

// AddWhole adds a row whose last cell is not cut to fit beside the other cells. If the cell does not fit there, it is
// written below them, on several lines. Only text beyond maxBelowLines is cut. The tail is a text after the last
// cell, which is left out if there is no room.
func (t *Table) AddWhole(colour Colour, tail string, cells ...string) {
	t.rows = append(t.rows, row{cells: escapeAll(cells), colour: colour, tail: text.Escape(tail), whole: true})
}

// escapeAll returns the cells, each escaped for a terminal.
func escapeAll(cells []string) []string {
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = text.Escape(cell)
	}
	return escaped
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// All yields the heading and then each row, with its colour. A row's tail belongs to its last cell.
func (t *Table) All() iter.Seq2[Colour, []string] {
	return func(yield func(Colour, []string) bool) {
		if !yield(Plain, t.heading) {
			return
		}

		for _, r := range t.rows {
			cells := slices.Clone(r.cells)
			if len(cells) > 0 {
				cells[len(cells)-1] += r.tail
			}
			if !yield(r.colour, cells) {
				return
			}
		}
	}
}

// Write writes the table, with the width of w if w is a terminal. It writes nothing if the table has no rows.
func (t *Table) Write(w io.Writer, coloured bool) error {
	if IsTerminal(w) {
		return t.WriteIn(w, coloured, SizeOf(w).Width)
	}
	return t.WriteIn(w, coloured, 0)
}

// WriteIn writes the table in width columns of a terminal, or with its natural width if width is 0. It writes
// nothing if the table has no rows. It leaves out columns as [Table.Spare] describes. Then it cuts text that
// does not fit, beginning with the last column. If too little of the last column would remain, it writes the
// last cells below their rows. It also writes a last cell there if the cell does not fit, and its row is from
// [Table.AddWhole]. The first column is never cut, unless it is the only one.
func (t *Table) WriteIn(w io.Writer, coloured bool, width int) error {
	if t.Empty() {
		return nil
	}

	t = t.withoutSpare(width)
	l := layout{
		columns:  len(t.heading),
		widths:   t.columnWidths(width),
		width:    width,
		coloured: coloured,
		painted:  slices.Index(t.heading, t.painted),
	}
	var b strings.Builder
	l.writeLine(&b, row{cells: t.heading, colour: Bold}, -1) // the whole heading is bold

	for _, r := range t.rows {
		l.writeRow(&b, r)
	}

	_, err := io.WriteString(w, b.String())
	return err
}

const (
	columnGap    = 2
	minLastWidth = 24
	// belowIndent is the indentation of a last cell that is below its row.
	belowIndent = 4
	// maxBelowLines is the maximum number of lines of a last cell that is below its row.
	maxBelowLines = 4
)

// LeftOut returns the headings of columns that have text, but are left out on a terminal of width columns.
func (t *Table) LeftOut(width int) (headings []string) {
	shown := t.withoutSpare(width).heading
	// At width 0, only spare columns without text are left out.
	for _, heading := range t.withoutSpare(0).heading {
		if !slices.Contains(shown, heading) {
			headings = append(headings, heading)
		}
	}
	return headings
}

// withoutSpare returns the table without the spare columns that have no text, or that leave too little space
// for the last column in a terminal of width columns. If width is 0, there is enough space.
func (t *Table) withoutSpare(width int) *Table {
	if len(t.spare) == 0 {
		return t
	}

	shown := t.without(func(column int) bool {
		hasText := func(r row) bool { return column < len(r.cells) && r.cells[column] != "" }
		return t.spare[t.heading[column]] && !slices.ContainsFunc(t.rows, hasText)
	})
	if width <= 0 {
		return shown
	}

	for {
		widths, sum := shown.naturalWidths()
		last := len(widths) - 1
		excess := sum - width
		// The last column can be cut to minLastWidth.
		if excess <= 0 || widths[last]-excess >= minLastWidth {
			return shown
		}

		spare := shown.lastSpare()
		if spare < 0 {
			return shown
		}
		shown = shown.without(func(column int) bool { return column == spare })
	}
}

// lastSpare returns the rightmost spare column before the table's last column, or -1 if there is none.
func (t *Table) lastSpare() int {
	for i := len(t.heading) - 2; i >= 0; i-- {
		if t.spare[t.heading[i]] {
			return i
		}
	}
	return -1
}

// without returns a copy of the table that lacks the columns for which isLeftOut returns true.
func (t *Table) without(isLeftOut func(column int) bool) *Table {
	shown := &Table{painted: t.painted, spare: t.spare, rows: slices.Clone(t.rows)}
	for i := range shown.rows {
		shown.rows[i].cells = nil
	}

	for column, heading := range t.heading {
		if isLeftOut(column) {
			continue
		}

		shown.heading = append(shown.heading, heading)
		for i, r := range t.rows {
			if column < len(r.cells) {
				shown.rows[i].cells = append(shown.rows[i].cells, r.cells[column])
			}
		}
	}

	return shown
}

// naturalWidths returns each column's width if nothing is cut, and their sum with the gaps.
func (t *Table) naturalWidths() (widths []int, sum int) {
	widths = make([]int, len(t.heading))
	sum = -columnGap
	last := len(widths) - 1

	for i := range widths {
		widths[i] = uniseg.StringWidth(t.heading[i])
		for _, r := range t.rows {
			if i < len(r.cells) {
				width := uniseg.StringWidth(r.cells[i])
				if i == last {
					width += uniseg.StringWidth(r.tail)
				}
				widths[i] = max(widths[i], width)
			}
		}
		sum += widths[i] + columnGap
	}

	return widths, sum
}

// columnWidths returns the columns' widths in a terminal of width columns, or the natural widths if width is 0. It
// narrows the last column first. If the last column would be narrower than minLastWidth, columnWidths leaves it out of
// the result, since its cells are then written below their rows. If necessary, it then narrows the other columns.
func (t *Table) columnWidths(width int) []int {
	widths, sum := t.naturalWidths()
	if width == 0 || sum <= width {
		return widths
	}

	last := len(widths) - 1
	if room := widths[last] - (sum - width); room >= minLastWidth {
		widths[last] = room
		return widths
	}

	excess := sum - widths[last] - columnGap - width
	t.shrinkWidest(widths[:last], excess)
	return widths[:last]
}

// shrinkWidest reduces the widths by excess in total, but never the width of the first column. It stops earlier if the
// widest of the other columns is only as wide as its heading.
func (t *Table) shrinkWidest(widths []int, excess int) {
	if len(widths) < 2 {
		return
	}

	others := widths[1:]
	headings := t.heading[1:]
	for ; excess > 0; excess-- {
		// Narrow the widest column, so that the cells of all columns stay readable.
		i := slices.Index(others, slices.Max(others))
		if others[i] <= uniseg.StringWidth(headings[i]) {
			return
		}
		others[i]--
	}
}

// layout writes the rows of a table.
type layout struct {
	columns  int
	widths   []int // without the last column if its cells are below their rows
	width    int   // the terminal's width, or 0 if nothing is cut
	coloured bool
	painted  int // the column that has the rows' colours, or -1 for all columns
}

// hasColour reports whether the row, or one of its cells, is written in a colour.
func (l layout) hasColour(r row) bool { return l.coloured && r.colour != "" }

// writeRow writes a row. It adds the tail only to a last cell, and only if there is room. It cuts a last cell that
// does not fit beside the other cells. If r is whole, or if l.widths lacks the last column, it writes the cell below
// the others instead.
func (l layout) writeRow(b *strings.Builder, r row) {
	if len(r.cells) < l.columns {
		// The row has no cell in the last column.
		l.writeLine(b, r, l.painted)
		return
	}

	end := l.columns - 1
	last := r.cells[end]
	hasLastColumn := len(l.widths) == l.columns
	fits := func(cell string) bool { return hasLastColumn && uniseg.StringWidth(cell) <= l.widths[end] }
	if fits(last + r.tail) {
		last += r.tail
	}

	canCut := hasLastColumn && !r.whole
	if fits(last) || canCut {
		r.cells = append(r.cells[:end:end], last)
		l.writeLine(b, r, l.painted)
		return
	}

	r.cells = r.cells[:end]
	l.writeLine(b, r, l.painted)
	for _, line := range l.foldBelow(r, last) {
		line = strings.Repeat(" ", belowIndent) + line
		if l.hasColour(r) && l.painted < 0 {
			line = Paint(r.colour, line)
		}
		b.WriteString(line + "\n")
	}
}

// foldBelow returns the lines of a last cell that is below its row, without indentation. If the row is whole, the cell
// can have maxBelowLines lines, with the row's tail if that fits. Otherwise the cell is cut to one line. An empty cell
// has no lines.
func (l layout) foldBelow(r row, last string) []string {
	room := l.width - belowIndent
	if last == "" {
		return nil
	}
	if !r.whole {
		return []string{cutAtWord(last, room)}
	}

	lines := foldWords(last+r.tail, room)
	if len(lines) > maxBelowLines {
		lines = foldWords(last, room)
	}
	if len(lines) > maxBelowLines {
		remainder := strings.Join(lines[maxBelowLines-1:], " ")
		lines = append(lines[:maxBelowLines-1], cutAtWord(remainder, room))
	}

	return lines
}

// writeLine writes the cells of a row in one line, each cut to its column's width. It leaves out the last cell if
// l.widths does. Colours do not count in the widths. painted is the column that has the row's colour, or -1 for the
// whole line.
func (l layout) writeLine(b *strings.Builder, r row, painted int) {
	var line strings.Builder
	gap := 0 // the spaces before the next cell that is not empty
	for i, cell := range r.cells[:min(len(r.cells), len(l.widths))] {
		cell = cutAtWord(cell, l.widths[i])
		room := l.widths[i] - uniseg.StringWidth(cell) + columnGap
		if cell == "" {
			gap += room
			continue
		}

		if l.hasColour(r) && i == painted {
			cell = Paint(r.colour, cell)
		}
		line.WriteString(strings.Repeat(" ", gap) + cell)
		gap = room
	}

	text := strings.TrimRight(line.String(), " ")
	if l.hasColour(r) && painted < 0 {
		text = Paint(r.colour, text)
	}
	b.WriteString(text + "\n")
}

// foldWords breaks a text between words into lines of at most that width. A longer word, such as a path,
// stays whole.
func foldWords(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}

	if line == "" {
		return lines
	}
	return append(lines, line)
}

// cutAtWord cuts a text that is wider than width, and adds an ellipsis. It cuts after the last word that fits, if that
// keeps more than half of the part that fits.
func cutAtWord(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}

	// Leave one column for the ellipsis.
	end := 0
	used := 0
	for g := uniseg.NewGraphemes(text); g.Next() && used+g.Width() < width; used += g.Width() {
		_, end = g.Positions()
	}

	// A word also ends at a space directly after the part that fits.
	if space := strings.LastIndexByte(text[:end+1], ' '); 2*space > end {
		end = space
	}
	return strings.TrimRight(text[:end], " ") + "…"
}
