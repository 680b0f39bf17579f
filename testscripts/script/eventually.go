package script

import (
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// awaitOutput is eventually DURATION REGEXP PROG ARG...: it runs the program again
// and again until its output matches (with !, until it does not), instead of sleeping;
// output is stdout and stderr together, the exit code does not matter. It fails after the
// duration.
func awaitOutput(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: [!] eventually DURATION REGEXP PROG ARG...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		_ = ts.Exec(args[2], args[3:]...)
		if want.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr")) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("within %s, the output did not come to match %q (negated: %t)", limit, args[1], neg)
		}
	}
}
