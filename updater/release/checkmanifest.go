package release

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// checkManifest returns an error with a line number if the manifest is invalid. It does not check the "after"
// keys.
func (r manifestReader) checkManifest(m Manifest) error {
	if m.Version != "" {
		if _, err := ParseVersion(m.Version); err != nil {
			return r.errorf(r.root.field("version"), "%w", err)
		}
	}

	if m.Requires != "" {
		if _, err := ParseVersion(m.Requires); err != nil {
			return r.errorf(r.root.field("requires"), "%w", err)
		}
	}

	if len(m.Components) == 0 {
		return r.errorf(r.root, "the manifest has no components")
	}
	lineOfName := map[string]int{}        // by the component's name
	componentOfKey := map[string]string{} // by the key of the component's contents

	for i, c := range m.Components {
		at := r.componentNode(i)
		if line, isUsed := lineOfName[c.Name]; isUsed {
			return r.errorf(at.field("name"), "the name %q is already used by the component at line %d", c.Name, line)
		}

		lineOfName[c.Name] = at.field("name").line()
		if err := r.checkComponent(at, c); err != nil {
			return err
		}

		// The key names the record of the result, which two components must not share.
		if c.Contents != nil {
			if other, isUsed := componentOfKey[c.Contents.Key]; isUsed {
				return r.errorf(at.field("contents").field("key"), "component %q: the key %q is already used by component %q",
					c.Name, c.Contents.Key, other)
			}
			componentOfKey[c.Contents.Key] = c.Name
		}
	}

	return nil
}

// checkComponent returns an error with a line number if a component of the manifest is invalid.
func (r manifestReader) checkComponent(at node, c Component) error {
	if err := checkName(c.Name); err != nil {
		return r.errorf(at.field("name"), "%w", err)
	}

	strategies := []Strategy{StopAll, Rolling, Any, LeaderOnce}
	if !slices.Contains(strategies, c.Strategy) {
		return r.errorf(at.field("strategy"), "component %q: there is no strategy %q; the strategies are %v", c.Name,
			c.Strategy, strategies)
	}

	mustHaveContents := c.Strategy == LeaderOnce
	hasContents := c.Contents != nil
	if mustHaveContents != hasContents {
		return r.errorf(at, "component %q: contents are required for the strategy %s, and not allowed for any other",
			c.Name, LeaderOnce)
	}
	if c.Strategy == StopAll && len(c.Services) == 0 {
		return r.errorf(at, "component %q: services are missing, so there is nothing to stop", c.Name)
	}
	if c.Soak < 0 {
		return r.errorf(at.field("soak"), "component %q: the soak time is negative", c.Name)
	}
	if c.Timeout != 0 && time.Duration(c.Timeout) < time.Second {
		return r.errorf(at.field("timeout"), "component %q: the timeout is less than a second", c.Name)
	}

	if c.HealthyWithin != 0 && time.Duration(c.HealthyWithin) < time.Second {
		return r.errorf(at.field("healthy-within"), "component %q: healthy-within is less than a second", c.Name)
	}

	checks := []struct {
		field string
		err   error
	}{
		{"artifact", checkArtifact(c.Artifact)},
		{"files", checkNamed(c.Files)},
		{"contents", checkContents(c.Contents)},
		{"health", checkHealth(c.Health)},
		{"members", checkMembers(c)},
		{"etcd", checkEtcd(c)},
		{"after-start", checkAfterStart(c.AfterStart)},
	}
	for _, check := range checks {
		if check.err != nil {
			return r.errorf(at.field(check.field), "component %q: %w", c.Name, check.err)
		}
	}

	return nil
}

// checkEtcd checks a component that is an etcd. It returns an error if the component is not rolling, or if its
// state URL does not begin with etcd:// or does not contain {lrn}, the placeholder for a server's LRN.
func checkEtcd(c Component) error {
	if c.Etcd == "" {
		return nil
	}
	if c.Strategy != Rolling {
		return fmt.Errorf("an etcd must have the strategy %s", Rolling)
	}
	if host, isEtcd := strings.CutPrefix(c.Etcd, "etcd://"); !isEtcd || !strings.Contains(host, "{lrn}") {
		return fmt.Errorf("invalid etcd %q: it must be a URL with {lrn}, such as etcd://10.0.{lrn}.3:2379", c.Etcd)
	}

	return nil
}

// checkName returns an error if the name cannot be used in keys, file names and tables.
func checkName(name string) error {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`).MatchString(name) {
		return fmt.Errorf("cannot name a component %q: a name has only lower-case letters, digits and hyphens", name)
	}
	return nil
}

// checkArtifact checks that an artifact is of exactly one kind, and that its fields are valid for that
// kind. A nil artifact is valid, since a component can have only configuration.
func checkArtifact(a *Artifact) error {
	if a == nil {
		return nil
	}
	if kinds := countTrue(a.Image != "", a.Archive != nil, a.Deb != nil); kinds != 1 {
		return fmt.Errorf("an artifact must have exactly one of image, archive and deb, and has %d", kinds)
	}

	switch {
	case a.Archive != nil && !strings.HasPrefix(a.Archive.To, "/"):
		//lint:ignore ST1005 the dots belong to the example
		return errors.New("an archive needs a directory to be unpacked into: to: /...")
	case a.Archive != nil:
		return checkFile(*a.Archive)
	case a.Deb != nil:
		return checkFile(*a.Deb)
	}

	return checkImage(a.Image)
}

// checkImage returns an error if the image has no name, no tag, or the tag latest, which can change at any time.
// It also returns an error if the image contains a space, a tab or a newline.
func checkImage(image string) error {
	name := image
	tag := ""
	// A colon before the last slash belongs to the port of a registry.
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		name = image[:i]
		tag = image[i+1:]
	}
	if name == "" || tag == "" || tag == "latest" || strings.ContainsAny(image, " \t\n") {
		return fmt.Errorf("image %q must have a tag other than latest", image)
	}

	return nil
}

// checkFile checks that a file has either one source for all architectures, or one source for each. A source is
// a URL or the name of a file of the release, together with a sum.
func checkFile(f File) error {
	hasSource := f.URL != "" || f.Name != "" || f.SHA256 != ""
	if f.ByArch != nil && hasSource {
		return errors.New("an artifact must have url and sha256, or by-arch")
	}

	for arch, one := range f.ByArch {
		if err := checkFile(one); err != nil {
			return fmt.Errorf("for %s: %w", arch, err)
		}
		if one.To != "" || one.ByArch != nil {
			return fmt.Errorf("for %s: only sha256 and one of url and file are allowed", arch)
		}
	}

	// An empty by-arch has no source, so the checks below refuse it.
	if len(f.ByArch) > 0 {
		return nil
	}
	if f.Name != "" {
		return checkReleaseFile(f)
	}
	if !strings.HasPrefix(f.URL, "https://") && !strings.HasPrefix(f.URL, "http://") {
		return fmt.Errorf("cannot download from %q: a URL must begin with https:// or http://", f.URL)
	}

	return checkSum(f.URL, f.SHA256)
}

// checkReleaseFile checks a file that is part of the release itself. The file must have a valid sum and no URL.
// Its name must be plain, and differ from the names of the files that each release has.
func checkReleaseFile(f File) error {
	if f.URL != "" {
		return fmt.Errorf("cannot use both url (%q) and file (%q)", f.URL, f.Name)
	}
	if !isPlainName(f.Name) || isReserved(f.Name) {
		return fmt.Errorf("cannot use %q as the name of a file in the release", f.Name)
	}

	return checkSum(f.Name, f.SHA256)
}

// isReserved reports whether each release has a file with this name.
func isReserved(name string) bool {
	return slices.Contains([]string{SumsFile, SignatureFile, ManifestFile, IndexFile}, name)
}

// checkSum returns an error if the sum of the file is missing or malformed.
func checkSum(file, sum string) error {
	if sum == "" {
		//lint:ignore ST1005 the dots belong to the example
		return fmt.Errorf("the SHA-256 sum of %q is missing: sha256: ...", file)
	}
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(sum) {
		return fmt.Errorf("the SHA-256 checksum of %q is not 64 hexadecimal digits", file)
	}

	return nil
}

// checkNamed returns an error if a file has a relative path or no valid sum.
func checkNamed(files []Named) error {
	for _, f := range files {
		if !strings.HasPrefix(f.Path, "/") {
			return fmt.Errorf("the path %q of a file is not absolute", f.Path)
		}
		if err := checkSum(f.Path, f.SHA256); err != nil {
			return err
		}
	}

	return nil
}

// checkContents checks the key, files and images of a component's contents.
func checkContents(c *Contents) error {
	if c == nil {
		return nil
	}
	if err := checkName(c.Key); err != nil {
		return err
	}

	for _, f := range c.Files() {
		if err := checkFile(f); err != nil {
			return err
		}
		// One server delivers the contents for all servers, whatever their architectures are.
		if f.ByArch != nil {
			return errors.New("a file of contents cannot have by-arch: only artifacts differ by architecture")
		}
	}

	for _, image := range c.Images {
		if err := checkImage(image); err != nil {
			return err
		}
	}

	return nil
}

// checkHealth returns an error unless the check is nil or has exactly one of HTTP and Command.
func checkHealth(h *Health) error {
	if h != nil && countTrue(h.HTTP != "", len(h.Command) > 0) != 1 {
		return errors.New("a health check must have either http or command")
	}
	return nil
}

// checkMembers returns an error if the component has an invalid check of members, or has one and is not
// rolling.
func checkMembers(c Component) error {
	if c.Members != nil && c.Strategy != Rolling {
		return fmt.Errorf("only the strategy %s has members", Rolling)
	}
	return checkHealth(c.Members)
}

// checkAfterStart returns an error if the command is missing, or its file has a relative path.
func checkAfterStart(a *AfterStart) error {
	if a == nil {
		return nil
	}
	if len(a.Command) == 0 {
		return errors.New("after-start must have a command")
	}
	if a.EachLineOf != "" && !strings.HasPrefix(a.EachLineOf, "/") {
		return fmt.Errorf("the file %q of after-start is not absolute", a.EachLineOf)
	}

	return nil
}

// countTrue returns how many of the facts are true.
func countTrue(facts ...bool) (n int) {
	for _, f := range facts {
		if f {
			n++
		}
	}
	return n
}
