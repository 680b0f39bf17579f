package etcdtest

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Metrics returns the member's metrics by name. It adds up metrics that differ only in their labels.
func (m *Member) Metrics() (map[string]float64, error) {
	req, err := http.NewRequest(http.MethodGet, "http://etcd/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := m.transport().RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("cannot ask member %s for metrics: %w", m.name, err)
	}
	defer resp.Body.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64); err == nil {
			all[name] += v
		}
	}
	return all, lines.Err()
}
