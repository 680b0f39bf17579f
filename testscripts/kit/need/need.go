// Package need declares the needs of tests: programs, rights and features of the host. If a need is missing,
// the test is skipped with one line, or fails if BIJOU_TEST_REQUIRE, a list with commas, names the need.
// The package also skips long tests.
package need

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Required reports whether BIJOU_TEST_REQUIRE names the need.
func Required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("BIJOU_TEST_REQUIRE"), ","), name)
}

// Lacks prints one line about a missing need and the reason. It returns an error if the need is
// required.
func Lacks(name string, why any) error {
	if Required(name) {
		return fmt.Errorf("BIJOU_TEST_REQUIRE asks for %s: %v", name, why)
	}
	fmt.Printf("skip: %v\n", why)
	return nil
}

// Skip skips the test because a need is missing, or fails it if the need is required.
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

// LongRun reports whether BIJOU_TEST_LONG asks for the tests that take minutes.
func LongRun() bool { return os.Getenv("BIJOU_TEST_LONG") != "" }

// Whole skips a test that takes seconds with -short, so that a newcomer sees in a minute and a half
// that all is well. With the race detector, -short has other reasons and skips nothing here.
func Whole(t testing.TB) {
	t.Helper()
	if testing.Short() && !race {
		t.Skip("takes seconds; not with -short")
	}
}

// Uninstrumented skips a test that measures the cost of work if the race detector is on. The work would
// take ten times as long, and the detector sees the same code in other tests.
func Uninstrumented(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("counts costs; not with the race detector")
	}
}
