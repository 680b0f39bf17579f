package providers

import (
	"os"
	"testing"

	"bijou/multicall/home"
	"bijou/provision/provider"
	"bijou/state"
)

// TestUnknownSettings checks that a provider works despite a setting from a newer binary, and that an
// operator cannot set a setting that this binary does not know.
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

// TestCheckSeries checks that a series is refused only by a provider that installs systems itself, and only
// on the host where it installs them.
func TestCheckSeries(t *testing.T) {
	for name, tt := range map[string]struct {
		provider  string
		elsewhere bool
		config    map[string]string
		refused   bool
	}{
		"containers":              {provider: "nspawn", refused: true},
		"of a tree of one's own":  {provider: "nspawn", config: map[string]string{"nspawn.tree.nosuchseries": "/x"}},
		"containers of elsewhere": {provider: "nspawn", elsewhere: true},
		"processes":               {provider: "local"},
		"hosts":                   {provider: "ssh"},
		"a plugin's":              {provider: "rack"},
	} {
		t.Run(name, func(t *testing.T) {
			e := home.Environment{Dir: t.TempDir()}
			if !tt.elsewhere {
				if err := os.MkdirAll(e.MachineDir("0"), 0o700); err != nil {
					t.Fatal(err)
				}
			}

			err := All{}.CheckSeries(e, state.Environment{Provider: tt.provider, Config: tt.config}, "nosuchseries")
			if (err != nil) != tt.refused {
				t.Errorf("error %v", err)
			}
		})
	}
}
