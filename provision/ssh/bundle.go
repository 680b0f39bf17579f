package ssh

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/provision/provider"
	"bijou/state/digest"
	"bijou/state/secretkeys"
)

// bundle holds what a machine's agent needs on its host.
type bundle struct {
	tools  string // VERSION-SHA8
	binary string // on this host
	sum    string // its sha256
	size   int64
	files  []bundleFile // the environment's record last: with it, the environment is there
}

// bundleFile is one small file, by its path below the environment's folder.
type bundleFile struct {
	path, mode string
	data       []byte
}

// The state must be one that other hosts reach.
func (p *Provider) newBundle(spec provider.Spec) (l bundle, err error) {
	record := map[string]any{} // so that keys which are unknown here are kept
	if err := p.env.ReadRecord(&record); err != nil {
		return l, err
	}
	if spec.Tools != "" {
		record["tools"] = spec.Tools
	}
	l.tools, _ = record["tools"].(string)
	if l.tools == "" || filepath.Base(l.tools) != l.tools {
		return l, fmt.Errorf("the environment's record names no tools, but %q", l.tools)
	}
	at, _ := record["state"].(string)
	if record["state"], l.files, err = p.packCredentials(at); err != nil {
		return l, err
	}
	keys, err := os.ReadFile(string(secretkeys.In(p.env.Dir)))
	switch {
	case err == nil:
		l.files = append(l.files, bundleFile{secretkeys.Name, "600", keys})
	case !errors.Is(err, fs.ErrNotExist): // an environment of before has none
		return l, fmt.Errorf("cannot take along the keys for secrets: %w", err)
	}
	text, err := yaml.Marshal(record)
	if err != nil {
		return l, fmt.Errorf("cannot write the environment's record: %w", err)
	}
	keeper, err := scripts.ReadFile("scripts/keep.sh")
	if err != nil {
		return l, fmt.Errorf("internal error: %w", err)
	}
	l.files = append(l.files, bundleFile{"keep.sh", "700", keeper}, bundleFile{"environment.yaml", "600", text})
	l.binary = filepath.Join(p.env.Dir, "tools", l.tools, "bijou")
	if l.sum, l.size, err = digest.OfFile(l.binary); err != nil {
		err = fmt.Errorf("cannot read the binary for the host: %w", err)
	}
	return l, err
}

// packCredentials returns the files that the state's URL names, and the URL as it is with them on
// the host.
func (p *Provider) packCredentials(at string) (there string, files []bundleFile, err error) {
	scheme, _, _ := strings.Cut(at, ":")
	if p.env.Shared || scheme == "sqlite" || scheme == "etcd+unix" {
		return "", nil, withHints(errors.New("the environment's state is on this host only, and other hosts cannot reach it"),
			"take the state to an etcd that they reach: juju migrate-state etcd://HOST:PORT,.../PREFIX")
	}
	base, query, asks := strings.Cut(at, "?")
	if !asks {
		return at, nil, nil
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, errors.New("the options of the state's URL are no query")
	}
	for _, option := range []string{"ca", "cert", "key", "password-file"} {
		if options.Get(option) == "" {
			continue
		}
		path := options.Get(option)
		if !filepath.IsAbs(path) { // the record names what the environment keeps from its folder
			path = filepath.Join(p.env.Dir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", nil, fmt.Errorf("cannot take along what the state's URL names as %s: %w", option, err)
		}
		f := bundleFile{"credentials/" + option, "600", data}
		files = append(files, f)
		options.Set(option, p.remoteDir()+"/"+f.path)
	}
	return base + "?" + strings.ReplaceAll(options.Encode(), "%2F", "/"), files, nil
}
