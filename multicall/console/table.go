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

// narrow returns a grammar without the commands that are not called, and what copies its
// fields to the whole one once they are parsed; ok is false unless args begin with a
// command. Kong looks at every option of every command of a grammar before it parses one,
// which is most of what a command line costs.
func narrow(grammar any, args []string) (part any, copyBack func(), ok bool) {
	whole := reflect.ValueOf(grammar).Elem()
	if len(args) == 0 {
		return nil, nil, false
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
		return nil, nil, false
	}
	parsed := reflect.New(reflect.StructOf(fields))
	return parsed.Interface(), func() {
		for i, f := range fields {
			whole.FieldByName(f.Name).Set(parsed.Elem().Field(i))
		}
	}, true
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
