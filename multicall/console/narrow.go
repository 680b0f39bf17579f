package console

import (
	"reflect"
	"slices"
	"strings"
)

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
