package charmsource

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 9, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": -1, "soon": -1, "-3": -1, "0": 0, "7": 7 * time.Second,
		"Tue, 10 Sep 2024 12:00:30 GMT": 30 * time.Second, "Tue, 10 Sep 2024 11:00:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestProxySkips(t *testing.T) {
	p := Proxy{HTTP: "http://p:1", None: "example.com, .internal,10.0.0.0/8"}
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "example.com": true, "a.example.com": true, "notexample.com": false,
		"x.internal": true, "10.1.2.3": true, "11.1.2.3": false,
	} {
		if got := p.skips(host); got != want {
			t.Errorf("%s: %t, want %t", host, got, want)
		}
	}
}
