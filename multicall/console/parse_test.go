package console

import (
	"errors"
	"io"
	"testing"
)

type testGrammar struct {
	Add struct {
		Name string `arg:""`
		N    int    `short:"n"`
	} `cmd:"" aliases:"plus" help:"Add."`
	Remove struct{} `cmd:"" help:"Remove."`
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
		hint string
	}{
		{[]string{"nosuch"}, `there is no command "nosuch"`, "see: tool --help"},
		{[]string{"rem"}, `there is no command "rem"; did you mean "remove"?`, "see: tool --help"},
		{[]string{"plsu"}, `there is no command "plsu"; did you mean "plus"?`, "see: tool --help"},
		{[]string{"xx"}, `there is no command "xx"`, "see: tool --help"},
		{[]string{""}, `there is no command ""`, "see: tool --help"},
		{[]string{"add"}, `expected "<name>"`, "see: tool add --help"},
		{[]string{"plus", "a", "b"}, "unexpected argument b", "see: tool add --help"},
		{[]string{"add", "-n", "x", "a"}, `--n: expected a valid 64 bit int but got "x"`, "see: tool add --help"},
		{[]string{"add", "a\xff"}, `"a\xff" is not UTF-8`, ""},
	} {
		_, err := Parse(Streams{Out: io.Discard, Err: io.Discard}, Command{Name: "tool", Grammar: &testGrammar{}}, tc.args)
		if err == nil || err.Error() != tc.want || !errors.As(err, new(usageError)) {
			t.Errorf("%q: %v, want %q as wrong usage", tc.args, err, tc.want)
		}
		var hinted hintedError
		if errors.As(err, &hinted); tc.hint != "" && (len(hinted.hints) != 1 || hinted.hints[0] != tc.hint || errors.As(hinted.error, new(hintedError))) {
			t.Errorf("%q: hints %q, want %q", tc.args, hinted.hints, tc.hint)
		}
	}
}
