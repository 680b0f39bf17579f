package access

import (
	"errors"
	"strings"
	"testing"
)

// TestAddressesStay checks that a machine can add addresses that are missing in its record, and cannot change
// the existing ones.
func TestAddressesStay(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		allowed       bool
	}{
		"both added":          {`{}`, `{"private":"10.0.0.1","public":"10.0.0.1"}`, true},
		"the public one":      {`{"private":"10.0.0.1"}`, `{"private":"10.0.0.1","public":"10.0.0.1"}`, true},
		"kept":                {`{"private":"10.0.0.1","public":"x"}`, `{"private":"10.0.0.1","public":"x"}`, true},
		"kept, of an old one": {`{"private":"-odd"}`, `{"private":"-odd"}`, true},
		"another's":           {`{"private":"10.0.0.1"}`, `{"private":"10.0.0.2"}`, false},
		"another's public":    {`{"private":"10.0.0.1","public":"a"}`, `{"private":"10.0.0.1","public":"b"}`, false},
		"none any more":       {`{"private":"10.0.0.1"}`, `{}`, false},
		"added, odd":          {`{}`, `{"private":"-oProxyCommand"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			with := func(addresses string) string {
				return strings.Replace(w["machines/1"], `"status"`, `"addresses":`+addresses+`,"status"`, 1)
			}
			after := with(c.after)
			w["machines/1"] = with(c.before)
			err := MayCommit(Agent("1"), NewPlacement(w), []Write{{Key: "machines/1", Value: []byte(after)}})
			if c.allowed && err != nil || !c.allowed && !errors.Is(err, ErrRefused) {
				t.Errorf("got %v, allowed is %v", err, c.allowed)
			}
		})
	}
}
