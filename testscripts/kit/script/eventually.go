package script

import (
	"fmt"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/kit/await"
)

// awaitOutput is the command eventually DURATION REGEXP PROG ARG...: it repeats the program until its output
// matches (with !, until it does not). Scripts use it in place of sleeps. Output is stdout and stderr
// together, and the exit code does not matter. It fails after the duration, but not before it has run the
// program five times for each second of it. This gives a busy or suspended machine enough time.
func awaitOutput(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: [!] eventually DURATION REGEXP PROG ARG...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	const pause, slow = 50 * time.Millisecond, 200 * time.Millisecond
	what := fmt.Sprintf("the output matches %q (negated: %t)", args[1], neg)
	await.Until(ts, await.Poll{Limit: limit, Pause: pause, Looks: int(limit / slow)}, what, func() bool {
		_ = ts.Exec(args[2], args[3:]...)
		return want.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr")) != neg
	})
}
