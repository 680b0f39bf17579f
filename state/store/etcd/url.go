package etcd

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// config is parsed from a state URL: a cluster, a prefix in it, and how to connect.
type config struct {
	endpoints    []string // as etcd's client takes them
	prefix       string   // "/a/b", never empty
	tls          bool
	ca           string
	cert, key    string
	user         string
	passwordFile string
}

func (p config) endpointList() string { return strings.Join(p.endpoints, ", ") }

const wantURL = "want etcd://HOST:PORT,HOST:PORT/PREFIX or etcd+unix:///SOCKET,/SOCKET?prefix=/PREFIX"

// parseURL does not use net/url for the whole: that knows one host only. Its
// errors quote no user data that could be a password.
func parseURL(raw string) (config, error) {
	p, err := splitURL(raw)
	if err != nil {
		return config{}, fmt.Errorf("invalid state URL: %w", err)
	}
	return p, nil
}

func splitURL(raw string) (config, error) {
	raw, query, _ := strings.Cut(raw, "?")
	options, err := parseOptions(query)
	if err != nil {
		return config{}, err
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	if strings.Contains(rest, "@") {
		return config{}, errors.New("it must not hold a user or a password: want ?user=NAME&password-file=FILE")
	}
	p := config{
		tls: options["tls"] == "true" || options["ca"] != "" || options["cert"] != "", ca: options["ca"],
		cert: options["cert"], key: options["key"], user: options["user"], passwordFile: options["password-file"],
	}
	switch scheme {
	case "etcd":
		hosts, prefix, _ := strings.Cut(rest, "/")
		if options["prefix"] != "" {
			return config{}, errors.New("the prefix goes into the path: " + wantURL)
		}
		p.prefix = "/" + prefix
		p.endpoints, err = splitEndpoints(hosts, "http", p.tls, checkHost)
	case "etcd+unix":
		p.prefix = options["prefix"]
		p.endpoints, err = splitEndpoints(rest, "unix", p.tls, checkSocket)
	default:
		err = errors.New(wantURL)
	}
	if err != nil {
		return config{}, err
	}
	return p, p.validate()
}

func parseOptions(query string) (map[string]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("its options are no query: want ?NAME=VALUE&NAME=VALUE")
	}
	known := []string{"ca", "cert", "key", "user", "password-file", "tls", "prefix"}
	options := map[string]string{}
	for name, value := range values {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown option %q: want one of %s", name, strings.Join(known, ", "))
		}
		if len(value) > 1 {
			return nil, fmt.Errorf("option %q is there twice", name)
		}
		options[name] = value[0]
	}
	if tls := options["tls"]; tls != "" && tls != "true" {
		return nil, errors.New("option tls is true, or is left out")
	}
	return options, nil
}

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

func checkHost(host string) error {
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" || port == "" {
		return fmt.Errorf("%q is no HOST:PORT: %s", host, wantURL)
	}
	return nil
}

func checkSocket(socket string) error {
	if !filepath.IsAbs(socket) {
		return fmt.Errorf("socket %q is no absolute path: %s", socket, wantURL)
	}
	return nil
}

func (p config) validate() error {
	if !regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+$`).MatchString(p.prefix) || path.Clean(p.prefix) != p.prefix {
		return fmt.Errorf("prefix %q: want /NAME or /NAME/NAME, of letters, digits, dots, dashes and underscores", p.prefix)
	}
	if (p.cert == "") != (p.key == "") {
		return errors.New("options cert and key go together")
	}
	if (p.user == "") != (p.passwordFile == "") {
		return errors.New("options user and password-file go together")
	}
	for _, file := range []string{p.ca, p.cert, p.key, p.passwordFile} {
		if file != "" && !filepath.IsAbs(file) {
			return fmt.Errorf("file %q is no absolute path", file)
		}
	}
	return nil
}
