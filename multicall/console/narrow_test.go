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

type narrowGrammar struct {
	From    string     `short:"f"`
	Fetch   fetchCmd   `cmd:"" aliases:"get,load"`
	ShowAll showAllCmd `cmd:""`
	LS      showAllCmd `cmd:"" name:"ls"`
}

// TestNarrow has each command found by its name and its aliases, with what stands beside it,
// and the whole grammar read where the first word is none.
func TestNarrow(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		narrow bool
		ran    string
		from   string
	}{
		{[]string{"fetch", "a", "--deep", "-f", "there"}, true, "fetch a", "there"},
		{[]string{"load", "a"}, true, "fetch a", ""},
		{[]string{"show-all", "--from=x"}, true, "show-all", "x"},
		{[]string{"ls"}, true, "show-all", ""},
		{[]string{"-f", "x", "ls"}, false, "show-all", "x"},
	} {
		var g narrowGrammar
		if _, _, ok := narrow(&g, tc.args); ok != tc.narrow {
			t.Errorf("%q: one command is known: %t", tc.args, ok)
		}
		var out bytes.Buffer
		var ran string
		parsed, err := Parse(Streams{Out: &out, Err: &out}, Command{Name: "x", Grammar: &g}, tc.args)
		if err == nil {
			err = parsed.Run(&ran)
		}
		if err != nil || ran != tc.ran || g.From != tc.from {
			t.Errorf("%q: ran %q, from %q: %v %s", tc.args, ran, g.From, err, &out)
		}
	}
	if _, _, ok := narrow(&narrowGrammar{}, []string{"fetc"}); ok {
		t.Error("fetc is no command")
	}
}
