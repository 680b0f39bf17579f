package console

import (
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"bijou/state/text"
)

// Table is aligned columns under a heading; a row may have a colour.
type Table struct {
	heading []string
	rows    []row
	painted string          // the heading of the column that rows' colours are for; "": whole rows
	spare   map[string]bool // headings of columns that may be left out
}

type row struct {
	cells  []string
	colour Colour // "": none
	tail   string // follows the last cell where there is room
	whole  bool   // the last cell is not cut
}

// NewTable returns a table without rows.
func NewTable(heading ...string) *Table { return &Table{heading: heading, spare: map[string]bool{}} }

// PaintOnly limits the rows' colours to their cells of one column.
func (t *Table) PaintOnly(heading string) { t.painted = heading }

// Spare names columns that may be left out: a column that is empty in all rows, and on a terminal the last of
// them while the table's last column has little room.
func (t *Table) Spare(headings ...string) {
	for _, heading := range headings {
		t.spare[heading] = true
	}
}

// Add adds a row; colour "" is none.
func (t *Table) Add(colour Colour, cells ...string) {
	t.rows = append(t.rows, row{cells: escapeAll(cells), colour: colour})
}

// AddWhole adds a row whose last cell is always shown completely. If it does not fit beside the others it
// stands below them, on as many lines as it needs. The tail follows that cell, and is the first part to be
// left out.
func (t *Table) AddWhole(colour Colour, tail string, cells ...string) {
	t.rows = append(t.rows, row{cells: escapeAll(cells), colour: colour, tail: text.Escape(tail), whole: true})
}

func escapeAll(cells []string) []string {
	plain := make([]string, len(cells))
	for i, cell := range cells {
		plain[i] = text.Escape(cell)
	}
	return plain
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// All yields the heading and then each row, with its colour.
func (t *Table) All() iter.Seq2[Colour, []string] {
	return func(yield func(Colour, []string) bool) {
		if !yield("", t.heading) {
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

// Write prints the table, on a terminal as wide as that is; nothing if it has no rows.
func (t *Table) Write(w io.Writer, coloured bool) error {
	if IsTerminal(w) {
		return t.WriteIn(w, coloured, SizeOf(w).Width)
	}
	return t.WriteIn(w, coloured, 0)
}

// WriteIn writes the table in that many columns; 0 means as many as it needs. It cuts text that does not
// fit, of the last column first. If too little of the last column would remain, it stands below its row.
// The first column is never cut.
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
	l.writeLine(&b, row{cells: t.heading, colour: Bold}, -1)

	for _, r := range t.rows {
		l.writeRow(&b, r)
	}

	_, err := io.WriteString(w, b.String())
	return err
}

const (
	columnGap    = 2
	minLastWidth = 24
	// belowIndent is how far in a last cell stands that is below its row.
	belowIndent = 4
	// maxBelowLines is how many lines a cell may take that is needed whole.
	maxBelowLines = 4
)

// LeftOut returns the headings of columns with texts for which so many columns of a terminal have no room.
func (t *Table) LeftOut(width int) (headings []string) {
	shown := t.withoutSpare(width).heading
	for _, heading := range t.withoutSpare(0).heading {
		if !slices.Contains(shown, heading) {
			headings = append(headings, heading)
		}
	}
	return headings
}

// withoutSpare returns the table that is shown: without the columns that may be left out and have no text, or
// take the room of the last one.
func (t *Table) withoutSpare(fit int) *Table {
	if len(t.spare) == 0 {
		return t
	}

	shown := t.without(func(i int) bool {
		hasText := func(r row) bool { return i < len(r.cells) && r.cells[i] != "" }
		return t.spare[t.heading[i]] && !slices.ContainsFunc(t.rows, hasText)
	})

	for fit > 0 {
		widths, sum := shown.naturalWidths()
		last := len(widths) - 1
		spare := -1
		for i, heading := range shown.heading {
			if t.spare[heading] && i != last {
				spare = i
			}
		}

		if spare < 0 || sum <= fit || widths[last]-(sum-fit) >= minLastWidth {
			break
		}
		shown = shown.without(func(i int) bool { return i == spare })
	}

	return shown
}

func (t *Table) without(left func(column int) bool) *Table {
	shown := &Table{painted: t.painted, spare: t.spare, rows: slices.Clone(t.rows)}
	for i := range shown.rows {
		shown.rows[i].cells = nil
	}

	for column, heading := range t.heading {
		if left(column) {
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

// columnWidths returns the columns' widths, without one for a last column that must stand below its rows.
func (t *Table) columnWidths(fit int) []int {
	widths, sum := t.naturalWidths()
	last := len(widths) - 1
	switch left := widths[last] - (sum - fit); {
	case fit == 0 || left >= widths[last]:
		return widths
	case left >= minLastWidth:
		widths[last] = left
		return widths
	}

	widths, sum = widths[:last], sum-widths[last]-columnGap
	for ; sum > fit && last > 1; sum-- {
		others := widths[1:]
		i := slices.Index(others, slices.Max(others))
		if others[i] <= len(t.heading[1+i]) {
			break
		}
		others[i]--
	}

	return widths
}

// layout is how a table's rows are written.
type layout struct {
	columns  int
	widths   []int // one less than columns: the last cells stand below their rows
	width    int   // of the terminal; 0: nothing is cut
	coloured bool
	painted  int // the column that has the rows' colours; -1: all have
}

// writeRow writes a row, with its last cell beside the others if it fits, and below them otherwise.
func (l layout) writeRow(b *strings.Builder, r row) {
	if len(r.cells) < l.columns {
		l.writeLine(b, r, l.painted)
		return
	}

	end := l.columns - 1
	last := r.cells[end]
	fits := func(cell string) bool { return len(l.widths) == l.columns && uniseg.StringWidth(cell) <= l.widths[end] }
	if fits(last + r.tail) {
		last += r.tail
	}

	if fits(last) || !r.whole && len(l.widths) == l.columns {
		r.cells = append(r.cells[:end:end], last)
		l.writeLine(b, r, l.painted)
		return
	}

	r.cells = r.cells[:end]
	l.writeLine(b, r, l.painted)
	for _, line := range l.foldBelow(r, last) {
		line = strings.Repeat(" ", belowIndent) + line
		if l.coloured && r.colour != "" && l.painted < 0 {
			line = Paint(r.colour, line)
		}
		b.WriteString(line + "\n")
	}
}

// foldBelow returns the lines of a last cell that stands below its row.
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
		rest := strings.Join(lines[maxBelowLines-1:], " ")
		lines = append(lines[:maxBelowLines-1], cutAtWord(rest, room))
	}

	return lines
}

// writeLine puts colours around the cells, so that they do not count in the widths; painted is the column
// that has the row's, -1 for all of them.
func (l layout) writeLine(b *strings.Builder, r row, painted int) {
	var line strings.Builder
	gap := 0
	for i, cell := range r.cells[:min(len(r.cells), len(l.widths))] {
		cell = cutAtWord(cell, l.widths[i])
		room := l.widths[i] - uniseg.StringWidth(cell) + columnGap
		if cell == "" {
			gap += room
			continue
		}

		if l.coloured && r.colour != "" && i == painted {
			cell = Paint(r.colour, cell)
		}
		line.WriteString(strings.Repeat(" ", gap) + cell)
		gap = room
	}

	text := strings.TrimRight(line.String(), " ")
	if l.coloured && r.colour != "" && painted < 0 {
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

// cutAtWord ends a text that is wider in an ellipsis, behind a word if that leaves half of it.
func cutAtWord(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}

	end := 0
	used := 0
	for g := uniseg.NewGraphemes(text); g.Next() && used+g.Width() < width; used += g.Width() {
		_, end = g.Positions()
	}
	if space := strings.LastIndexByte(text[:end+1], ' '); 2*space > end {
		end = space
	}
	return strings.TrimRight(text[:end], " ") + "…"
}
