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

// network is the content of networkFile, which exists as long as there are instances.
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

// networkCount is the number of /24 networks in 10.64.0.0/10. chooseNetwork chooses one of them.
const networkCount = 64 << 8

// bridgeName returns the name of the bridge that connects the environment's containers with this host.
func (p *Provider) bridgeName() string { return p.namePrefix + "-br" }

// ensureNetwork creates the environment's network and its bridge if they do not exist. It sets r.Address to
// an unused address in the network, unless the record already has one. The caller must hold the lock on
// p.dir.
func (p *Provider) ensureNetwork(r *provider.Record) error {
	path := filepath.Join(p.dir, networkFile)
	var n network
	exists, err := jsonfile.Read(path, &n)
	if err != nil {
		return err
	}
	if !exists {
		n, err = p.chooseNetwork()
		if err != nil {
			return err
		}
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
// this host does not use. It returns an error if the configured network is not a free IPv4 /24, or if no /24 is
// free.
func (p *Provider) chooseNetwork() (network, error) {
	taken, err := p.listUsedNetworks()
	if err != nil {
		return network{}, err
	}
	if asked := p.env.Config["network"]; asked != "" {
		return parseNetwork(asked, taken)
	}

	// Each environment begins at a different network, so that two environments are unlikely to choose the same
	// network at the same time.
	h := fnv.New32a()
	h.Write([]byte(p.namePrefix))
	first := h.Sum32()

	for try := range uint32(networkCount) {
		number := (first + try) % networkCount
		// The number becomes the second and third byte of the address.
		address := netip.AddrFrom4([4]byte{10, byte(64 + number>>8), byte(number), 0})
		subnet := netip.PrefixFrom(address, 24)
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
		return network{}, fmt.Errorf("nspawn.network is %q, but this host uses %s: choose another network", asked, other)
	}

	return network{Subnet: subnet.Masked()}, nil
}

// findOverlap returns the first of the taken networks that overlaps the subnet, or nil if there is none.
func findOverlap(subnet netip.Prefix, taken []netip.Prefix) *netip.Prefix {
	i := slices.IndexFunc(taken, subnet.Overlaps)
	if i < 0 {
		return nil
	}
	return &taken[i]
}

// listUsedNetworks returns the IPv4 networks in this host's routes and on its interfaces, except those of the
// environment's own bridge.
func (p *Provider) listUsedNetworks() ([]netip.Prefix, error) {
	routes, err := listRoutes(p.bridgeName())
	if err != nil {
		return nil, err
	}
	// Interfaces that are down have no routes.
	onInterfaces, err := listInterfaceNetworks(p.bridgeName())
	if err != nil {
		return nil, err
	}

	return append(routes, onInterfaces...), nil
}

// listRoutes returns the destinations of this host's IPv4 routes, except default routes and the routes of the
// given bridge.
func listRoutes(exceptBridge string) ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var routes []netip.Prefix
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// The columns are: interface, destination, gateway, flags, three counters, mask.
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[0] == exceptBridge {
			continue
		}

		// The line of headings is not hexadecimal, so parseRoute refuses it.
		route, ok := parseRoute(fields[1], fields[7])
		isDefault := route.Bits() == 0
		if ok && !isDefault {
			routes = append(routes, route)
		}
	}

	return routes, nil
}

// listInterfaceNetworks returns the IPv4 networks of the addresses of this host's interfaces, except those of
// the given bridge.
func listInterfaceNetworks(exceptBridge string) ([]netip.Prefix, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}

	var networks []netip.Prefix
	for _, i := range interfaces {
		if i.Name == exceptBridge {
			continue
		}

		// This fails if the interface was removed in the meantime.
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Addr().Is4() {
				networks = append(networks, prefix.Masked())
			}
		}
	}

	return networks, nil
}

// parseRoute parses a destination and its mask from /proc/net/route, in hexadecimal. The result ok is false
// unless each of them has four bytes.
func parseRoute(destination, mask string) (route netip.Prefix, ok bool) {
	d, destinationErr := hex.DecodeString(destination)
	m, maskErr := hex.DecodeString(mask)
	if destinationErr != nil || maskErr != nil {
		return netip.Prefix{}, false
	}
	if len(d) != 4 || len(m) != 4 {
		return netip.Prefix{}, false
	}

	// The kernel prints little-endian numbers.
	slices.Reverse(d)
	slices.Reverse(m)
	bits, _ := net.IPMask(m).Size()
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(d)), bits), true
}

// nextAddress returns the first unused address for a machine after n.Last. After the network's last address
// for machines, it continues with the first one. It returns an error if all of them are used.
func (p *Provider) nextAddress(n network) (netip.Addr, error) {
	instances, err := p.listInstances()
	if err != nil {
		return netip.Addr{}, err
	}

	used := map[string]bool{}
	for _, i := range instances {
		used[i.Private] = true
	}

	// host is the last byte of an address.
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

// addressAt returns the address in the network that has this last byte.
func (n network) addressAt(last byte) netip.Addr {
	b := n.Subnet.Addr().As4()
	b[3] = last
	return netip.AddrFrom4(b)
}

// createBridge creates the environment's bridge, unless it exists. It gives the bridge this host's address in
// the network, and brings it up. It returns an error if the bridge does not exist, and this host uses the
// network elsewhere.
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

// removeBridge removes the environment's bridge, if it exists.
func (p *Provider) removeBridge() error {
	if _, err := net.InterfaceByName(p.bridgeName()); err != nil {
		return nil
	}
	return runIP("link", "delete", p.bridgeName())
}

// removeLink removes the network link of a container that has stopped. The kernel also removes the link, but
// only after a while. Until then, the next container could not get a link with that name. It returns nil if
// there is no such link.
func removeLink(ctx context.Context, id string) error {
	// systemd-nspawn(1) defines this name. A name that is too long for a link becomes an alternative name of
	// the link, by which ip also finds the link.
	link := "vb-" + id
	exists := func() bool { return exec.CommandContext(ctx, "ip", "link", "show", "dev", link).Run() == nil }
	if !exists() {
		// If ctx is done, ip has not run.
		return ctx.Err()
	}

	err := runIP("link", "delete", link)
	switch {
	case err == nil:
		return nil
	case exists():
		return err
	}

	// The kernel has removed the link first, unless ctx is done and ip has not run.
	return ctx.Err()
}

// runIP runs ip(8). Its error contains the output.
func runIP(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot run ip %s: %w: %s",
			strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
