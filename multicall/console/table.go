package console

import (
	"io"
	"reflect"
	"slices"
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

// narrowed is a grammar of one command: kong looks at every option of every command of a
// grammar before it parses one, which is most of what a command line costs.
type narrowed struct {
	whole reflect.Value // the struct that the grammar points to
	part  reflect.Value // a struct of the same fields, but for the commands that are not called
}

// narrow returns nothing unless args begin with a command of the grammar.
func narrow(grammar any, args []string) (n narrowed, ok bool) {
	whole := reflect.ValueOf(grammar).Elem()
	if len(args) == 0 {
		return n, false
	}
	var fields []reflect.StructField
	for i := range whole.NumField() {
		f := whole.Type().Field(i)
		called := isCommand(f) && slices.Contains(commandNames(f), args[0])
		ok = ok || called
		if called || !isCommand(f) {
			fields = append(fields, f)
		}
	}
	if !ok {
		return n, false
	}
	return narrowed{whole, reflect.New(reflect.StructOf(fields))}, true
}

// grammar returns what kong parses in place of the whole grammar.
func (n narrowed) grammar() any { return n.part.Interface() }

// copyBack puts what was parsed where the caller looks for it.
func (n narrowed) copyBack() {
	part := n.part.Elem()
	for i := range part.NumField() {
		n.whole.FieldByName(part.Type().Field(i).Name).Set(part.Field(i))
	}
}

func isCommand(f reflect.StructField) bool {
	_, is := f.Tag.Lookup("cmd")
	return is
}

// commandNames are kong's: the field's tag, else its name in lower case with dashes.
func commandNames(f reflect.StructField) []string {
	names := strings.Split(f.Tag.Get("aliases"), ",")
	if name := f.Tag.Get("name"); name != "" {
		return append(names, name)
	}
	return append(names, dashed(f.Name))
}

func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
