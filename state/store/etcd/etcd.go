// Package etcd is the store in an etcd cluster, for environments of many machines.
//
// It is not a general client of etcd and, except for ReplaceMember, does not manage the cluster: compaction,
// quotas and users are tasks of the cluster's operator. It needs etcd 3.4.25, 3.5.8, 3.6 or newer. In older
// versions a watch can report progress before it has delivered all events.
//
// Its files are:
//
//   - etcd.go: opening, and the URL
//   - dial.go: connections, passwords and certificates, which are read again for each connection
//   - create.go: the marker that makes a prefix a store, and the names of the store's keys in etcd
//   - members.go: the replacement of a dead member
//   - advisory.go: warnings about faults of the servers
//   - hedge.go: timeouts, repeated calls and errors
//   - history.go: the detection of a restored snapshot, and the sweep of tombstones
//   - snapshot.go: reads
//   - commit.go: transactions
//   - lease.go: leases, and the leased keys that prefix conditions need
//   - watchstream.go: one stream of events
//   - watchmux.go: all watchers over one stream
//   - watcher.go: one watcher, with a replay of past changes
//
// docs/dev/etcd-watch.md describes how the last three files work together.
//
// # Prefix conditions
//
// etcd can compare keys that exist, but not keys that were deleted. So each transaction that deletes a key
// writes a tombstone for the key. A transaction that puts a key under a lease also writes a tombstone, since
// such a key can vanish without a transaction. A prefix condition compares the newest revision below the
// prefix, the newest tombstone below it, and the presence of each key that was under a lease at the
// condition's revision. So a prefix condition never holds if a key below the prefix has changed.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// db is one process's handle of a store.
type db struct {
	*handle.Opener
	config config
	keys   keyCodec
	auth   *authenticator
	client *clientv3.Client
	marker int64 // the revision that created the store's marker

	readLatency atomic.Int64 // duration of the last read, in nanoseconds
	lastHedge   atomic.Int64 // when a read last needed a second member, in nanoseconds since 1970
	history     historyTracker
	leasedKeys  *leasedKeyCache
	watches     *watchMux
	sweeper     sweeper
}

// openTimeout limits Open and Create, in addition to their contexts.
const openTimeout = 10 * time.Second

// Open opens the store at the URL. It returns ErrNoStore if there is no store. If no member answers, it fails
// within ten seconds, or at the context's deadline if that is sooner.
//
//	etcd://h1:2379,h2:2379/prefix?ca=FILE&cert=FILE&key=FILE&user=NAME&password-file=FILE
//	etcd+unix:///run/etcd.sock,/run/other.sock?prefix=/prefix&user=NAME&password-file=FILE
//
// All options are optional, except the prefix of etcd+unix. Connections use TLS with ca or cert, or with
// tls=true, which trusts the system's authorities. Files are absolute paths. The files key and password-file
// must be readable only by their owner.
func Open(ctx context.Context, url string) (store.Store, error) {
	p, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %q: %w", url, err)
	}

	return d, nil
}

// open connects to the cluster, and reads the marker of the store at the prefix. It returns ErrNoStore if there
// is no store.
func open(ctx context.Context, p config) (*db, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()

	d, err := connect(ctx, p)
	if err != nil {
		return nil, err
	}
	if d.marker, err = d.readMarker(ctx); err != nil {
		// The handle has no leases or goroutines yet, so only its client must be closed.
		d.client.Close()
		return nil, err
	}

	return d, nil
}

// connect returns a handle for the store. If the URL names a user, connect logs in. It does not read the store, so
// the handle's marker is not set yet.
func connect(ctx context.Context, p config) (*db, error) {
	a := &authenticator{config: p, now: time.Now}
	client, err := dial(ctx, p, a)
	if err != nil {
		return nil, err
	}

	d := &db{
		Opener:     handle.New(),
		config:     p,
		auth:       a,
		keys:       keyCodec{root: p.prefix + "/"},
		client:     client,
		leasedKeys: &leasedKeyCache{keys: map[listingID][]string{}},
	}

	d.watches = &watchMux{
		d:      d,
		bySpan: map[handle.Span]*spanWatch{},
		byID:   map[int64]*spanWatch{},
		index:  handle.WatcherIndex[*watcher]{},
	}

	d.sweeper.d = d
	return d, nil
}

// Close revokes this process's leases, ends its watches, and closes the connections.
func (d *db) Close() error {
	d.Opener.Close(func() { d.client.Close() })
	return nil
}

// config is a parsed state URL: a cluster, a prefix in it, and the options of connections.
type config struct {
	endpoints    []string // in the form that etcd's client accepts
	prefix       string   // "/a/b", never empty
	tls          bool     // whether connections use TLS
	ca           string   // the file of authorities to trust; empty for the system's authorities
	cert, key    string   // the files of the client's certificate and its key; both or neither are set
	user         string   // empty if the client does not log in
	passwordFile string   // set if user is set
}

func (p config) endpointList() string { return strings.Join(p.endpoints, ", ") }

const wantURL = "want etcd://HOST:PORT,HOST:PORT/PREFIX or etcd+unix:///SOCKET,/SOCKET?prefix=/PREFIX"

// parseURL parses and validates the URL of a store. It does not use url.Parse, which allows only one host.
func parseURL(raw string) (_ config, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("invalid state URL: %w", err)
		}
	}()

	raw, query, _ := strings.Cut(raw, "?")
	options, err := parseOptions(query)
	if err != nil {
		return config{}, err
	}

	scheme, afterScheme, _ := strings.Cut(raw, "://")
	if strings.Contains(afterScheme, "@") {
		// The error does not quote the URL, which can contain a password.
		return config{}, errors.New("the URL must not contain a user or a password: want ?user=NAME&password-file=FILE")
	}

	p := config{
		tls:          options["tls"] == "true" || options["ca"] != "" || options["cert"] != "",
		ca:           options["ca"],
		cert:         options["cert"],
		key:          options["key"],
		user:         options["user"],
		passwordFile: options["password-file"],
	}

	switch scheme {
	case "etcd":
		hosts, prefix, _ := strings.Cut(afterScheme, "/")
		if options["prefix"] != "" {
			return config{}, errors.New("the prefix must be in the path: " + wantURL)
		}
		p.prefix = "/" + prefix
		p.endpoints, err = splitEndpoints(hosts, "http", p.tls, checkHost)
	case "etcd+unix":
		// The sockets' paths contain slashes, so the prefix is an option.
		p.prefix = options["prefix"]
		p.endpoints, err = splitEndpoints(afterScheme, "unix", p.tls, checkSocket)
	default:
		err = errors.New(wantURL)
	}
	if err != nil {
		return config{}, err
	}

	return p, p.validate()
}

// errNoQuery does not quote the URL, which can contain a password.
var errNoQuery = errors.New("the options of the URL are not a query: want ?NAME=VALUE&NAME=VALUE")

// parseOptions parses the URL's options. Each option must be known, and can be given only once.
func parseOptions(query string) (map[string]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errNoQuery
	}

	known := []string{"ca", "cert", "key", "user", "password-file", "tls", "prefix"}
	options := map[string]string{}
	for name, value := range values {
		isKnown := slices.Contains(known, name)
		if !isKnown && strings.Contains(query, "@") {
			// This can be a part of a password with a question mark.
			return nil, errNoQuery
		}
		if !isKnown {
			return nil, fmt.Errorf("unknown option %q: want one of %s", name, strings.Join(known, ", "))
		}
		if len(value) > 1 {
			return nil, fmt.Errorf("option %q is given twice", name)
		}
		options[name] = value[0]
	}

	if tls := options["tls"]; tls != "" && tls != "true" {
		return nil, errors.New("option tls can only be true")
	}

	return options, nil
}

// splitEndpoints returns the addresses of a comma-separated list as URLs with the scheme, or with its secure
// form (scheme + "s") if tls is set. It returns the error of check if check refuses an address.
func splitEndpoints(list, scheme string, tls bool, check func(address string) error) ([]string, error) {
	if tls {
		scheme += "s"
	}
	var endpoints []string
	for address := range strings.SplitSeq(list, ",") {
		if err := check(address); err != nil {
			return nil, err
		}
		endpoints = append(endpoints, scheme+"://"+address)
	}

	return endpoints, nil
}

// checkHost returns an error if host does not have the form HOST:PORT.
func checkHost(host string) error {
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" || port == "" {
		return fmt.Errorf("%q is not HOST:PORT: %s", host, wantURL)
	}
	return nil
}

// checkSocket returns an error if socket is not an absolute path.
func checkSocket(socket string) error {
	if !filepath.IsAbs(socket) {
		return fmt.Errorf("socket %q is not an absolute path: %s", socket, wantURL)
	}
	return nil
}

// validate returns an error if the prefix has a wrong form, if only one of two options that belong together is
// given, or if a file is not an absolute path.
func (p config) validate() error {
	if !regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+$`).MatchString(p.prefix) || path.Clean(p.prefix) != p.prefix {
		return fmt.Errorf(
			"prefix %q: want /NAME or /NAME/NAME, of letters, digits, dots, dashes and underscores",
			p.prefix,
		)
	}

	if (p.cert == "") != (p.key == "") {
		return errors.New("options cert and key must be given together")
	}
	if (p.user == "") != (p.passwordFile == "") {
		return errors.New("options user and password-file must be given together")
	}

	for _, file := range []string{p.ca, p.cert, p.key} {
		if file != "" && !filepath.IsAbs(file) {
			return fmt.Errorf("file %q is not an absolute path", file)
		}
	}
	if p.passwordFile != "" && !filepath.IsAbs(p.passwordFile) {
		// The value is not quoted, since it can be the password itself.
		return errors.New("the option password-file is not an absolute path")
	}

	return nil
}
