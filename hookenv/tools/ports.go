package tools

import (
	"fmt"
	"strconv"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// checkPortText returns a usage error if the text is not a range of ports.
func checkPortText(text string) error {
	if _, err := parsePort(text); err != nil {
		return hookenv.UsageErrorf("%v", err)
	}
	return nil
}

// parsePort parses a range, such as "80", "80/udp", "100-200/tcp" or "icmp". The default protocol is tcp. It
// ignores case, and a protocol after "icmp".
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

	var err error
	if port.From, err = parsePortNumber(first); err != nil {
		return port, err
	}
	if port.To, err = parsePortNumber(last); err != nil {
		return port, err
	}

	return port, checkPort(port)
}

// parsePortNumber parses one end of a range of ports.
func parsePortNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("invalid port %q: expected PORT or FROM-TO, and then the protocol, such as 80/tcp", text)
	}
	return n, nil
}

// checkPort returns an error for a range with an invalid protocol or invalid numbers. The error texts are
// those of Juju.
func checkPort(p hookapi.Port) error {
	switch {
	case p.Protocol == "icmp": // such as "80/icmp"
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
