package tools

import (
	"fmt"
	"strconv"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func checkPortText(text string) error {
	if _, err := parsePort(text); err != nil {
		return hookenv.UsageErrorf("%v", err)
	}
	return nil
}

// parsePort parses a range, such as "80", "80/udp", "100-200/tcp" or "icmp". It ignores case.
func parsePort(text string) (hookapi.Port, error) {
	numbers, protocol, found := strings.Cut(strings.ToLower(text), "/")
	if !found {
		protocol = "tcp"
	}
	if numbers == "icmp" {
		return hookapi.Port{Protocol: "icmp"}, nil
	}

	port := hookapi.Port{Protocol: protocol}
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	if strings.Contains(last, "-") {
		return port, fmt.Errorf("invalid port range %q", numbers)
	}

	for _, bound := range []struct {
		to   *int
		text string
	}{{&port.From, first}, {&port.To, last}} {
		n, err := strconv.Atoi(bound.text)
		if err != nil {
			return port, fmt.Errorf("invalid port %q: expected PORT or FROM-TO, and then the protocol, such as 80/tcp", bound.text)
		}
		*bound.to = n
	}

	return port, checkPort(port)
}

// checkPort returns an error for an invalid range, with the text of Juju's error.
func checkPort(p hookapi.Port) error {
	switch {
	case p.Protocol == "icmp":
		return fmt.Errorf("protocol \"icmp\" doesn't support any ports; got \"%d\"", p.From)
	case p.Protocol != "tcp" && p.Protocol != "udp":
		return fmt.Errorf("invalid protocol %q, expected \"tcp\", \"udp\", or \"icmp\"", p.Protocol)
	case p.From > p.To:
		return fmt.Errorf("invalid port range %d-%d/%s", p.From, p.To, p.Protocol)
	case p.From < 0 || p.To > 65535:
		return fmt.Errorf("port range bounds must be between 0 and 65535, got %d-%d", p.From, p.To)
	}

	return nil
}
