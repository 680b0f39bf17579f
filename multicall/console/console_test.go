package console

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	plain := errors.New("cannot do it")
	tests := []struct {
		name string
		err  error
		code int
		text string
	}{
		{"nothing", nil, 0, ""},
		{"helped", ErrHelped, 0, ""},
		{"plain", plain, 1, "error: cannot do it\n"},
		{"usage", Usage(plain), 2, "error: cannot do it\n"},
		{"hint", Hint(plain, "try", "again"), 1, "error: cannot do it\nhint: try\nhint: again\n"},
		{"hint on usage", Hint(Usage(plain), "try"), 2, "error: cannot do it\nhint: try\n"},
		{"a disk's error", fmt.Errorf("cannot do it: %w", syscall.EIO), 1, "error: cannot do it: input/output error\nhint: look for the disk's errors in dmesg\n"},
		{"a disk's error with a hint", Hint(fmt.Errorf("cannot do it: %w", syscall.EIO), "try"), 1, "error: cannot do it: input/output error\nhint: try\n"},
		{"usage with hint", Usage(Hint(plain, "try")), 2, "error: cannot do it\nhint: try\n"},
		{"wrapped", Hint(fmt.Errorf("here: %w", Hint(plain, "inner")), "outer"), 1, "error: here: cannot do it\nhint: outer\nhint: inner\n"},
		{"joined", Hint(errors.Join(Hint(plain, "one"), plain, Hint(plain, "other")), "all"), 1, "error: cannot do it\ncannot do it\ncannot do it\nhint: all\nhint: one\nhint: other\n"},
		{"escape sequences", Hint(errors.New("a\x1b[31m\u009b2J\nb\u202e"), "c\x1b]0;d\a"), 1, "error: a\\x1b[31m\\u009b2J\nb\\u202e\nhint: c\\x1b]0;d\\a\n"},
		{"the same hint twice", errors.Join(Hint(plain, "one"), Hint(plain, "one")), 1, "error: cannot do it\ncannot do it\nhint: one\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Report(&out, tt.err); code != tt.code || out.String() != tt.text {
				t.Errorf("exit %d, %q", code, out.String())
			}
		})
	}
	if Hint(nil, "try") != nil {
		t.Error("a hint without an error is an error")
	}
}

func TestTable(t *testing.T) {
	table := NewTable("UNIT", "STATE", "MESSAGE")
	table.Add("", "blög/0", "up", "")
	table.Add(Red, "b/10", "error", "why not")
	var plain, coloured strings.Builder
	if err := errors.Join(table.Write(&plain, false), table.Write(&coloured, true)); err != nil {
		t.Fatal(err)
	}
	want := "UNIT    STATE  MESSAGE\nblög/0  up\nb/10    error  why not\n"
	if diff := cmp.Diff(want, plain.String()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(coloured.String(), Paint(Red, "b/10    error  why not")) {
		t.Errorf("%q", coloured.String())
	}
}

// TestTableWholeRows checks rows that must be shown in full. A table drops the tail first and prints the rest
// below the row. It drops optional columns so that the last column fits. It colours only the cell of one
// column.
func TestTableWholeRows(t *testing.T) {
	table := NewTable("UNIT", "STATUS", "AGENT", "ADDRESS", "PORTS", "MESSAGE")
	table.PaintOnly("STATUS")
	table.Spare("AGENT", "ADDRESS", "PORTS")
	table.Add("", "web/0", "active", "", "10.0.0.10", "80/tcp", "it serves, and goes on to do so for a long time")
	table.AddWhole(Red, "; see: juju debug-log --unit web/1", "web/1", "error", "", "10.0.0.11", "", "start: exit code 1")
	table.AddWhole(Red, "; see: more", "web/2", "error", "", "", "", "install: exit code 2: there is no room on the disk of this host")
	for _, tc := range []struct {
		width int
		want  string
	}{
		{0, `
UNIT   STATUS  ADDRESS    PORTS   MESSAGE
web/0  active  10.0.0.10  80/tcp  it serves, and goes on to do so for a long time
web/1  error   10.0.0.11          start: exit code 1; see: juju debug-log --unit web/1
web/2  error                      install: exit code 2: there is no room on the disk of this host; see: more
`},
		{56, `
UNIT   STATUS  ADDRESS    MESSAGE
web/0  active  10.0.0.10  it serves, and goes on to do…
web/1  error   10.0.0.11  start: exit code 1
web/2  error
    install: exit code 2: there is no room on the disk
    of this host; see: more
`},
		{30, `
UNIT   STATUS
web/0  active
    it serves, and goes on to…
web/1  error
    start: exit code 1; see:
    juju debug-log --unit
    web/1
web/2  error
    install: exit code 2:
    there is no room on the
    disk of this host; see:
    more
`},
		{22, `
UNIT   STATUS
web/0  active
    it serves, and…
web/1  error
    start: exit code
    1; see: juju
    debug-log --unit
    web/1
web/2  error
    install: exit code
    2: there is no
    room on the disk
    of this host
`},
	} {
		var out, coloured strings.Builder
		if err := errors.Join(table.WriteIn(&out, false, tc.width), table.WriteIn(&coloured, true, tc.width)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, "\n"+out.String()); diff != "" {
			t.Errorf("in %d columns (-want +got):\n%s", tc.width, diff)
		}
		if !strings.Contains(coloured.String(), "web/1  "+Paint(Red, "error")) {
			t.Errorf("in %d columns: %q", tc.width, coloured.String())
		}
	}
}

// TestTableFits checks that text that does not fit is cut between words, starting with the last column. If
// only a small part would remain, the text is printed below its row. Wide characters count twice.
func TestTableFits(t *testing.T) {
	table := NewTable("UNIT", "STATE", "MESSAGE")
	table.Add("", "blög/0", "up", "it waits for the database to answer")
	table.Add("", "データ/0", "up", "準備ができていません準備ができていません")
	table.Add("", "b/10", "error", "")
	table.Add("", "b/11", "error", "/a/path/without/any/space/that/goes/on")
	for _, tc := range []struct {
		width int
		want  []string
	}{
		{0, []string{"UNIT      STATE  MESSAGE", "blög/0    up     it waits for the database to answer", "データ/0  up     準備ができていません準備ができていません",
			"b/10      error", "b/11      error  /a/path/without/any/space/that/goes/on"}},
		{41, []string{"UNIT      STATE  MESSAGE", "blög/0    up     it waits for the…", "データ/0  up     準備ができていません準…",
			"b/10      error", "b/11      error  /a/path/without/any/spa…"}},
		{14, []string{"UNIT      STATE", "blög/0    up", "    it waits…", "データ/0  up", "    準備がで…",
			"b/10      error", "b/11      error", "    /a/path/w…"}},
	} {
		var out strings.Builder
		if err := table.WriteIn(&out, false, tc.width); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Join(tc.want, "\n")+"\n", out.String()); diff != "" {
			t.Errorf("in %d columns (-want +got):\n%s", tc.width, diff)
		}
	}
}
