package providers

import (
	"testing"

	"bijou/provision/provider"
)

// TestUnknownSettings: a setting that a newer binary has given an environment keeps no provider from
// working, and nobody gives one that this binary does not know.
func TestUnknownSettings(t *testing.T) {
	for _, b := range builtinProviders() {
		t.Run(b.name, func(t *testing.T) {
			config := map[string]string{"from-the-future": "x"}
			p, err := b.create(provider.Environment{Name: "e", UUID: "u", Dir: t.TempDir(), Config: config})
			if err != nil {
				t.Fatalf("an environment that has it is not opened: %v", err)
			}
			if _, err := p.Capabilities(t.Context()); err != nil {
				t.Error(err)
			}
			if err := (All{}).CheckSettings(b.name, map[string]string{b.name + ".from-the-future": "x"}); err == nil {
				t.Error("it may be given")
			}
			if err := (All{}).CheckSettings(b.name, map[string]string{"hook-timeout": "1m"}); err != nil {
				t.Errorf("another's is refused: %v", err)
			}
		})
	}
}
