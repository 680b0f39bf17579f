package daemon

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"bijou/state/metrics"
)

// ServeMetrics serves Prometheus until stop is called; without an address, nothing.
func ServeMetrics(address string, m *metrics.Registry) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		m.Write(w)
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) }) // until stop
	return func() { _ = s.Close(); serving.Wait() }, nil
}
