// Package need says what a test wants of the machine and what becomes of it
// without: it is skipped with one line, or fails if BIJOU_TEST_REQUIRE, a list
// separated by commas, names what is missing; and which tests are long.
//
// It imports nothing of bijou. Tests and their packages import it.
package need

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Required tells if BIJOU_TEST_REQUIRE names the need.
func Required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("BIJOU_TEST_REQUIRE"), ","), name)
}

// Lacks tells with one line that the need is not met, and why. It is an error if
// the need is required.
func Lacks(name string, why any) error {
	if Required(name) {
		return fmt.Errorf("BIJOU_TEST_REQUIRE asks for %s: %v", name, why)
	}
	fmt.Printf("skip: %v\n", why)
	return nil
}

// Skip skips the test because the need is not met, or fails it if it is required.
func Skip(t testing.TB, name string, why any) {
	t.Helper()
	if err := Lacks(name, why); err != nil {
		t.Fatal(err)
	}
	t.Skip(why)
}

// Long skips a test that takes minutes, unless BIJOU_TEST_LONG is set.
func Long(t testing.TB) {
	t.Helper()
	if !LongRun() {
		t.Skip("BIJOU_TEST_LONG is not set")
	}
}

// LongRun tells if the tests that take minutes are wanted.
func LongRun() bool { return os.Getenv("BIJOU_TEST_LONG") != "" }

// Whole skips a test that takes seconds with -short, which shows a newcomer in a minute and a half
// that all is well. The race detector's run is short for other reasons, and skips nothing here.
func Whole(t testing.TB) {
	t.Helper()
	if testing.Short() && !race {
		t.Skip("takes seconds; not with -short")
	}
}

// Uninstrumented skips a test that counts what work costs when the race detector watches: its work
// takes ten times as long then, and the detector sees the same code in other tests.
func Uninstrumented(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("counts costs; not with the race detector")
	}
}
