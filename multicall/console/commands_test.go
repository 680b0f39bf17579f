package console

import (
	"bytes"
	"testing"
)

type fetchCmd struct {
	Path string `arg:""`
	Deep bool
}

func (c *fetchCmd) Run(got *string) error { *got = "fetch " + c.Path; return nil }

type showAllCmd struct{}

func (showAllCmd) Run(got *string) error { *got = "show-all"; return nil }

type testCommands struct {
	Fetch   fetchCmd   `cmd:"" aliases:"get,load" help:"Fetch \"it\": a:b."`
	ShowAll showAllCmd `cmd:""`
	LS      showAllCmd `cmd:"" name:"ls"`
}

// TestCommands checks that each command is found by its name and its aliases, and that an unknown first word
// runs no command.
func TestCommands(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		alone bool
		ran   string
		from  string
	}{
		{[]string{"fetch", "a", "--deep", "-f", "there"}, true, "fetch a", "there"},
		{[]string{"load", "a"}, true, "fetch a", ""},
		{[]string{"show-all", "--from=x"}, true, "show-all", "x"},
		{[]string{"ls"}, true, "show-all", ""},
		{[]string{"-f", "x", "ls"}, false, "show-all", "x"},
	} {
		var g struct {
			From string `short:"f"`
		}
		c := Command{Name: "x", Grammar: &g, Commands: &testCommands{}}
		if n := len(c.commandOptions(tc.args)); (n == 1) != tc.alone {
			t.Errorf("%q: kong looks at %d commands", tc.args, n)
		}
		var out bytes.Buffer
		var ran string
		parsed, err := Parse(Streams{Out: &out, Err: &out}, c, tc.args)
		if err == nil {
			err = parsed.Run(&ran)
		}
		if err != nil || ran != tc.ran || g.From != tc.from {
			t.Errorf("%q: ran %q, from %q: %v %s", tc.args, ran, g.From, err, &out)
		}
	}
	if n := len((Command{Commands: &testCommands{}}).commandOptions([]string{"fetc"})); n != 3 {
		t.Errorf("fetc is no command, of %d", n)
	}
}
