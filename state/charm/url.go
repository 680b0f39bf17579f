package charm

import (
	"fmt"
	"strconv"
	"strings"
)

// URL names one revision of a charm: "local:precise/mysql-7".
type URL struct {
	Series   string
	Name     string
	Revision int
}

// String prints the URL as ParseURL reads it.
func (u URL) String() string {
	return fmt.Sprintf("local:%s/%s-%d", u.Series, u.Name, u.Revision)
}

// MarshalText makes a URL one string in JSON and YAML.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText is the reverse of MarshalText.
func (u *URL) UnmarshalText(text []byte) (err error) {
	*u, err = ParseURL(string(text))
	return err
}

// ParseURL reads a charm URL with all of its three parts.
func ParseURL(s string) (URL, error) {
	ref, err := ParseRef(s)
	if err != nil {
		return URL{}, err
	}
	if !strings.HasPrefix(s, "local:") || ref.Series == "" || ref.Revision < 0 {
		return URL{}, fmt.Errorf("invalid charm URL %q: want local:SERIES/NAME-REVISION", s)
	}
	return URL(ref), nil
}

// Ref is an operator's reference to a charm in a repository. Series is empty if any will
// do, Revision -1 if the greatest is meant.
type Ref struct {
	Series   string
	Name     string
	Revision int
}

// String prints the reference as ParseRef reads it: "precise/mysql-7".
func (r Ref) String() string {
	text := r.Name
	if r.Series != "" {
		text = r.Series + "/" + text
	}
	if r.Revision >= 0 {
		text += "-" + strconv.Itoa(r.Revision)
	}
	return text
}

// ParseRef reads NAME, SERIES/NAME, local:NAME or local:SERIES/NAME, each with
// or without -REVISION. Any other scheme is refused with advice.
func ParseRef(s string) (_ Ref, err error) {
	rest := s
	if scheme, after, ok := strings.Cut(s, ":"); ok {
		if scheme != "local" {
			return Ref{}, fmt.Errorf("cannot use charm URL %q: there is no charm store, only local charms: "+
				"give the path of a charm's directory, or --repository DIR and a name", s)
		}
		rest = after
	}
	defer wrapError(&err, "invalid charm URL %q", s)
	var ref Ref
	if series, name, ok := strings.Cut(rest, "/"); ok {
		if err := CheckSeries(series); err != nil {
			return Ref{}, err
		}
		ref.Series, rest = series, name
	}
	ref.Name, ref.Revision = cutRevision(rest)
	return ref, CheckName(ref.Name)
}

// cutRevision splits "mysql-7"; the revision is -1 if there is none.
func cutRevision(s string) (name string, revision int) {
	dash := strings.LastIndexByte(s, '-')
	if dash < 0 {
		return s, -1
	}
	n, err := strconv.Atoi(s[dash+1:])
	if err != nil || n < 0 || n > maxRevision || strconv.Itoa(n) != s[dash+1:] {
		return s, -1
	}
	return s[:dash], n
}
