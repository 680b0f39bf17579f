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

// networkFile is the file that records the environment's network.
const networkFile = "network.json"

// network is the content of networkFile. It exists as long as there are instances.
type network struct {
	Subnet netip.Prefix `json:"subnet"`
	// Last is the address that was last given to a machine. Addresses are given in turn, so that the
	// address of a removed machine is not reused soon.
	Last netip.Addr `json:"last"`
}

// The last bytes of the addresses in a network.
const (
	gatewayHost = 1 // for this host, on the bridge
	firstHost   = 10
	lastHost    = 250
)

// networkCount is the number of /24 networks in 10.64.0.0/10, from which networks are chosen.
const networkCount = 64 << 8

func (p *Provider) bridgeName() string { return p.namePrefix + "-br" }

// ensureNetwork gives the machine an address in the environment's network, and creates the network if it does
// not exist. The caller must hold the environment's lock.
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

	// The network is recorded before its bridge is created, so that there is never an unrecorded bridge.
	if err := jsonfile.Write(path, n); err != nil {
		return err
	}

	return p.createBridge(n)
}

// chooseNetwork returns the configured network. If none is configured, it returns a /24 in 10.64.0.0/10 that
// this host does not use.
func (p *Provider) chooseNetwork() (network, error) {
	taken, err := p.listUsedNetworks()
	if err != nil {
		return network{}, err
	}
	if asked := p.env.Config["network"]; asked != "" {
		return parseNetwork(asked, taken)
	}

	h := fnv.New32a()
	// The hash makes it unlikely that two environments choose the same network at the same time.
	h.Write([]byte(p.namePrefix))

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

// listUsedNetworks returns the networks in this host's routes and on its interfaces, except that of the
// environment's own bridge.
func (p *Provider) listUsedNetworks() ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var all []netip.Prefix
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// The columns are: interface, destination, gateway, flags, three counters, mask.
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[0] == p.bridgeName() {
			continue
		}

		// The default route is not a used network.
		if prefix, ok := parseRoute(fields[1], fields[7]); ok && prefix.Bits() > 0 {
			all = append(all, prefix)
		}
	}

	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}

	// Interfaces that are down have no routes.
	for _, l := range links {
		addresses, _ := l.Addrs() // fails if the interface was removed in the meantime
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && l.Name != p.bridgeName() && prefix.Addr().Is4() {
				all = append(all, prefix.Masked())
			}
		}
	}

	return all, nil
}

// parseRoute parses a destination and its mask from /proc/net/route, in hexadecimal. It returns ok false if
// they are not of IPv4.
func parseRoute(destination, mask string) (route netip.Prefix, ok bool) {
	d, destinationErr := hex.DecodeString(destination)
	m, maskErr := hex.DecodeString(mask)
	if destinationErr != nil || maskErr != nil || len(d) != 4 || len(m) != 4 {
		return netip.Prefix{}, false
	}

	// The kernel prints little-endian numbers.
	slices.Reverse(d)
	slices.Reverse(m)
	bits, _ := net.IPMask(m).Size()
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(d)), bits), true
}

// nextAddress returns the first unused address after the one that was given last. After the network's last
// address, it continues with the first one.
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

// createBridge creates the environment's bridge, unless it exists, and brings it up.
func (p *Provider) createBridge(n network) error {
	if _, err := net.InterfaceByName(p.bridgeName()); err != nil {
		taken, err := p.listUsedNetworks()
		if err != nil {
			return err
		}
		// After a reboot of the host, another program may use the recorded network.
		if other := findOverlap(n.Subnet, taken); other != nil {
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

// removeLink removes the network link of a container that has stopped. The kernel also removes the link, but
// only after a while. Until then, the next container could not get a link with that name.
func removeLink(ctx context.Context, id string) error {
	// See systemd-nspawn(1). If the name is too long for a link, it is an alternative name of the link.
	link := "vb-" + id
	exists := func() bool { return exec.CommandContext(ctx, "ip", "link", "show", "dev", link).Run() == nil }
	if !exists() {
		return ctx.Err()
	}
	if err := runIP("link", "delete", link); err != nil && exists() {
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
