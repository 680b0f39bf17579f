package juju

import "testing"

func TestIsOlder(t *testing.T) {
	cases := map[string]struct {
		version, than string
		older         bool
	}{
		"the same":            {"0.2.0", "0.2.0", false},
		"one before":          {"0.1.0", "0.2.0", true},
		"numbers, not text":   {"0.9.0", "0.10.0", true},
		"the first one later": {"0.2.0-1", "0.2.0", false},
		"the second release":  {"2026.11.24-1", "2026.11.24-2", true},
		"the tenth release":   {"2026.11.24-10", "2026.11.24-9", false},
		"a day later":         {"2026.11.25-1", "2026.11.24-2", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isOlder(c.version, c.than); got != c.older {
				t.Errorf("isOlder(%q, %q) is %v", c.version, c.than, got)
			}
		})
	}
}
