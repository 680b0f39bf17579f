package nspawn

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state/jsonfile"
)

// networkFile records which network the environment has.
const networkFile = "network.json"

// network is the content of networkFile. It lasts as long as there are instances.
type network struct {
	Subnet netip.Prefix `json:"subnet"`
	// Last was given last: addresses go round, so that one is not another machine's
	// as long as somebody remembers whose it was.
	Last netip.Addr `json:"last"`
}

// The hosts' part of the addresses that machines get.
const (
	gatewayHost = 1 // of this host, on the bridge
	firstHost   = 10
	lastHost    = 250
)

// networkCount is how many /24 there are in 10.64.0.0/10, from which networks are chosen.
const networkCount = 64 << 8

func (p *Provider) bridgeName() string { return p.namePrefix + "-br" }

// ensureNetwork gives the machine an address of the environment's network, and makes the network if there
// is none. The caller has locked the environment.
func (p *Provider) ensureNetwork(r *provider.Record) error {
	path := filepath.Join(p.dir, networkFile)
	var n network
	there, err := jsonfile.Read(path, &n)
	if !there {
		n, err = p.chooseNetwork()
	}
	if err != nil {
		return err
	}

	if r.Address == "" {
		if n.Last, err = p.nextAddress(n); err != nil {
			return err
		}
		r.Address = n.Last.String()
	}

	// Written before the link is made: what is there is known.
	if err := jsonfile.Write(path, n); err != nil {
		return err
	}

	return p.createBridge(n)
}

// chooseNetwork returns the configured network, or a /24 of 10.64.0.0/10 that this host does not use.
func (p *Provider) chooseNetwork() (network, error) {
	taken, err := p.usedNetworks()
	if err != nil {
		return network{}, err
	}
	if asked := p.env.Config["network"]; asked != "" {
		return parseNetwork(asked, taken)
	}

	h := fnv.New32a()
	h.Write([]byte(p.namePrefix)) // so that two that choose at once do not choose the same

	for try := range uint32(networkCount) {
		at := (h.Sum32() + try) % networkCount
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(64 + at>>8), byte(at), 0}), 24)
		if findOverlap(subnet, taken) == nil {
			return network{Subnet: subnet}, nil
		}
	}

	return network{}, errors.New("no /24 of 10.64.0.0/10 is free on this host: set a different network with nspawn.network")
}

// parseNetwork parses the configured network, which must be a free IPv4 /24.
func parseNetwork(asked string, taken []netip.Prefix) (network, error) {
	subnet, err := netip.ParsePrefix(asked)
	if err != nil || subnet.Bits() != 24 || !subnet.Addr().Is4() {
		return network{}, fmt.Errorf("nspawn.network is %q: want one like 10.77.0.0/24", asked)
	}
	if other := findOverlap(subnet.Masked(), taken); other != nil {
		return network{}, fmt.Errorf("nspawn.network is %q, but this host uses %s: choose another", asked, other)
	}

	return network{Subnet: subnet.Masked()}, nil
}

func findOverlap(subnet netip.Prefix, taken []netip.Prefix) *netip.Prefix {
	i := slices.IndexFunc(taken, subnet.Overlaps)
	if i < 0 {
		return nil
	}
	return &taken[i]
}

// usedNetworks returns the networks that this host knows by its routes and interfaces, without that of the
// environment's own bridge.
func (p *Provider) usedNetworks() ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var all []netip.Prefix
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[0] == p.bridgeName() {
			continue
		}

		if prefix, ok := parseRoute(fields[1], fields[7]); ok && prefix.Bits() > 0 {
			all = append(all, prefix)
		}
	}

	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}

	for _, l := range links { // also those that are down, which no route leads to
		addresses, _ := l.Addrs()
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && l.Name != p.bridgeName() && prefix.Addr().Is4() {
				all = append(all, prefix.Masked())
			}
		}
	}

	return all, nil
}

// parseRoute parses a destination and its mask from /proc/net/route, which holds hexadecimal digits.
func parseRoute(destination, mask string) (netip.Prefix, bool) {
	d, errA := hex.DecodeString(destination)
	m, errB := hex.DecodeString(mask)
	if errA != nil || errB != nil || len(d) != 4 || len(m) != 4 {
		return netip.Prefix{}, false
	}

	slices.Reverse(d) // the number of a little-endian machine
	slices.Reverse(m)
	bits, _ := net.IPMask(m).Size()
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(d)), bits), true
}

// nextAddress returns the first unused address after the one that was given out last. After the network's last
// address it begins again at the first one.
func (p *Provider) nextAddress(n network) (netip.Addr, error) {
	all, err := p.listInstances()
	if err != nil {
		return netip.Addr{}, err
	}

	used := map[string]bool{}
	for _, i := range all {
		used[i.Private] = true
	}
	host := firstHost - 1
	if n.Last.IsValid() {
		host = int(n.Last.As4()[3])
	}

	const count = lastHost - firstHost + 1
	for range count {
		host++
		if host > lastHost {
			host = firstHost
		}
		a := n.addressAt(byte(host))
		if !used[a.String()] {
			return a, nil
		}
	}

	return netip.Addr{}, fmt.Errorf(
		"the network %s is full: a model can have at most %d machines on a host",
		n.Subnet, count,
	)
}

func (n network) addressAt(last byte) netip.Addr {
	b := n.Subnet.Addr().As4()
	b[3] = last
	return netip.AddrFrom4(b)
}

// createBridge makes the environment's bridge, unless it exists, and brings it up.
func (p *Provider) createBridge(n network) error {
	if _, err := net.InterfaceByName(p.bridgeName()); err != nil {
		taken, err := p.usedNetworks()
		if err != nil {
			return err
		}
		if other := findOverlap(n.Subnet, taken); other != nil { // since the host was booted again
			return fmt.Errorf(
				"the model's network %s is in use by a different link of this host (%s): remove that link",
				n.Subnet, other,
			)
		}

		if err := runIP("link", "add", p.bridgeName(), "type", "bridge"); err != nil {
			return err
		}
	}

	if err := runIP("address", "replace", n.addressAt(gatewayHost).String()+"/24", "dev", p.bridgeName()); err != nil {
		return err
	}

	return runIP("link", "set", p.bridgeName(), "up")
}

func (p *Provider) removeBridge() error {
	if _, err := net.InterfaceByName(p.bridgeName()); err != nil {
		return nil
	}
	return runIP("link", "delete", p.bridgeName())
}

// removeLink removes the link of a container that has ended. The kernel takes a while to do it, and the
// next container could not have a link of that name.
func removeLink(ctx context.Context, id string) error {
	link := "vb-" + id // systemd-nspawn(1); a longer name is an alternative one of the link
	there := func() bool { return exec.CommandContext(ctx, "ip", "link", "show", "dev", link).Run() == nil }
	if !there() {
		return ctx.Err()
	}
	if err := runIP("link", "delete", link); err != nil && there() {
		return err
	}

	return nil
}

func runIP(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot run ip %s: %w: %s",
			strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
