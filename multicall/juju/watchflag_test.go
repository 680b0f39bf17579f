package juju

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// TestWatchFlag checks which words after --watch are its time, and which are selectors.
func TestWatchFlag(t *testing.T) {
	for _, tc := range []struct {
		args      []string
		interval  time.Duration
		selectors int
		fails     bool
	}{
		{args: []string{"--watch"}},
		{args: []string{"--watch", "5s"}, interval: 5 * time.Second},
		{args: []string{"--watch=5s", "web"}, interval: 5 * time.Second, selectors: 1},
		{args: []string{"--watch", "web"}, selectors: 1},
		{args: []string{"--watch", "0"}, selectors: 1}, // machine 0
		{args: []string{"--watch", "5s", "0"}, interval: 5 * time.Second, selectors: 1},
		{args: []string{"--watch=0"}, fails: true},
		{args: []string{"--watch", "0s"}, fails: true},
		{args: []string{"--watch", "-5s"}, fails: true},
		{args: []string{"--watch=web"}, fails: true},
	} {
		var got struct {
			Watch     watchFlag
			Selectors []string `arg:"" optional:""`
		}
		parser, err := kong.New(&got)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(tc.args)
		if (err != nil) != tc.fails {
			t.Errorf("%q: error %v", tc.args, err)
			continue
		}
		if !tc.fails && (!got.Watch.set || got.Watch.interval != tc.interval || len(got.Selectors) != tc.selectors) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
}
