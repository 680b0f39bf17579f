package outage

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// skip skips a test with one line, or fails it if BIJOU_TEST_REQUIRE names what
// is missing.
func skip(t *testing.T, what, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("BIJOU_TEST_REQUIRE"), ","), what) {
		t.Fatalf("BIJOU_TEST_REQUIRE asks for %s: %s", what, why)
	}
	fmt.Printf("skip: %s\n", why)
	t.Skip(why)
}
