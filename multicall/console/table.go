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
		plain[i] = text.Escape(cell)
	}
	t.rows = append(t.rows, row{cells: plain, colour: colour})
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// All yields the heading and then each row, with its colour.
func (t *Table) All() iter.Seq2[Colour, []string] {
	return func(yield func(Colour, []string) bool) {
		for _, r := range append([]row{{cells: t.heading}}, t.rows...) {
			if !yield(r.colour, r.cells) {
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

// WriteIn is Write in so many columns; 0: as many as it takes. What does not fit is cut, of the last
// column first; where little of that would be left, it stands below its row.
func (t *Table) WriteIn(w io.Writer, coloured bool, width int) error {
	if t.Empty() {
		return nil
	}

	widths := t.columnWidths(width)
	var b strings.Builder
	writeRow(&b, row{cells: t.heading, colour: Bold}, widths, coloured)

	for _, r := range t.rows {
		writeRow(&b, r, widths, coloured)
		if last := r.cells[len(r.cells)-1]; len(widths) < len(t.heading) && last != "" {
			writeRow(&b, row{cells: []string{"  ", last}, colour: r.colour}, []int{2, width - 2 - columnGap},
				coloured)
		}
	}

	_, err := io.WriteString(w, b.String())
	return err
}

const (
	columnGap    = 2
	minLastWidth = 24
)

// columnWidths has none for a last column that is to stand below its rows.
func (t *Table) columnWidths(fit int) []int {
	widths := make([]int, len(t.heading))
	sum := -columnGap
	for i := range widths {
		for _, r := range append([]row{{cells: t.heading}}, t.rows...) {
			if i < len(r.cells) {
				widths[i] = max(widths[i], uniseg.StringWidth(r.cells[i]))
			}
		}
		sum += widths[i] + columnGap
	}

	last := len(widths) - 1
	switch left := widths[last] - (sum - fit); {
	case fit == 0 || left >= widths[last]:
		return widths
	case left >= minLastWidth:
		widths[last] = left
		return widths
	}

	widths, sum = widths[:last], sum-widths[last]-columnGap
	for ; sum > fit; sum-- {
		i := slices.Index(widths, slices.Max(widths))
		if widths[i] <= len(t.heading[i]) {
			break
		}
		widths[i]--
	}

	return widths
}

// writeRow puts the colour around the whole line, so that it does not count in the widths.
func writeRow(b *strings.Builder, r row, widths []int, coloured bool) {
	var line strings.Builder
	for i, cell := range r.cells[:min(len(r.cells), len(widths))] {
		cell = cutAtWord(cell, widths[i])
		line.WriteString(cell)
		line.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell)+columnGap))
	}

	text := strings.TrimRight(line.String(), " ")
	if coloured && r.colour != "" {
		text = Paint(r.colour, text)
	}
	b.WriteString(text + "\n")
}

// cutAtWord ends a text that is wider in an ellipsis, behind a word if that leaves half of it.
func cutAtWord(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}

	end, used := 0, 0
	for g := uniseg.NewGraphemes(text); g.Next() && used+g.Width() < width; used += g.Width() {
		_, end = g.Positions()
	}
	if space := strings.LastIndexByte(text[:end+1], ' '); 2*space > end {
		end = space
	}
	return strings.TrimRight(text[:end], " ") + "…"
}
