package juju

import (
	"fmt"
	"strings"
	"testing"
)

// TestDescriptionHasLimits checks that a store cannot keep the command busy with YAML that takes long to decode.
func TestDescriptionHasLimits(t *testing.T) {
	var manyKeys strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&manyKeys, "k%d: x\n", i)
	}
	for name, tt := range map[string]struct {
		text string
		want bool
	}{
		"small":             {"k: x\n", true},
		"empty":             {"", false},
		"invalid":           {"k: [\n", false},
		"deep":              {strings.Repeat("[", 20_000), false},
		"large":             {"k: " + strings.Repeat("x", 1<<20), false},
		"many keys":         {manyKeys.String(), false},
		"several documents": {"k: x\n---\nk: x\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			var into map[string]any
			if got := decodeDescription(tt.text, &into); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
