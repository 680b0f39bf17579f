package juju

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/progress"
	"bijou/state/secret"
	"bijou/state/secretkeys"
	"bijou/state/secrets"
)

// secretInfo is a secret as Juju's own clients show it.
type secretInfo struct {
	Revision    int             `json:"revision" yaml:"revision"`
	Expires     string          `json:"expires,omitempty" yaml:"expires,omitempty"`
	Rotation    string          `json:"rotation,omitempty" yaml:"rotation,omitempty"`
	Rotates     string          `json:"rotates,omitempty" yaml:"rotates,omitempty"`
	Owner       string          `json:"owner" yaml:"owner"`
	Description string          `json:"description,omitempty" yaml:"description,omitempty"`
	Name        string          `json:"name,omitempty" yaml:"name,omitempty"`   // the operators'
	Label       string          `json:"label,omitempty" yaml:"label,omitempty"` // its owner's
	Created     string          `json:"created" yaml:"created"`
	Updated     string          `json:"updated" yaml:"updated"`
	Content     revealedContent `json:"content,omitempty" yaml:"content,omitempty"`
	Revisions   []revisionInfo  `json:"revisions,omitempty" yaml:"revisions,omitempty"`
	Access      []accessInfo    `json:"access,omitempty" yaml:"access,omitempty"`
}

type revisionInfo struct {
	Revision int    `json:"revision" yaml:"revision"`
	Backend  string `json:"backend" yaml:"backend"`
	Created  string `json:"created" yaml:"created"`
	Updated  string `json:"updated" yaml:"updated"`
	Expires  string `json:"expires,omitempty" yaml:"expires,omitempty"`
}

type accessInfo struct {
	Target string `json:"target" yaml:"target"`
	Scope  string `json:"scope" yaml:"scope"`
	Role   string `json:"role" yaml:"role"`
}

// revealedContent is below a key "Data" in JSON, as Juju's clients have it.
type revealedContent map[string]string

// MarshalJSON puts the content below its key.
func (c revealedContent) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]map[string]string{"Data": c})
}

func newSecretInfo(r secret.Record, revisions bool) secretInfo {
	info := secretInfo{
		Revision: r.Latest, Rotation: r.Rotate, Rotates: formatTime(r.RotateAt), Owner: r.Owner.String(), Description: r.Description,
		Label: r.Label, Created: formatTime(r.Created), Updated: formatTime(r.Updated), Expires: formatTime(r.Revisions[r.Latest].Expires),
	}
	if r.Owner == (secret.Owner{}) {
		info.Name, info.Label = r.Label, ""
	}
	for _, n := range slices.Sorted(maps.Keys(r.Revisions)) {
		if rev := r.Revisions[n]; revisions {
			info.Revisions = append(info.Revisions, revisionInfo{n, "internal", formatTime(rev.Created), formatTime(rev.Created), formatTime(rev.Expires)})
		}
	}
	for _, g := range r.Grants {
		a := accessInfo{"application-" + g.Service, "model", "view"}
		if g.Unit != "" {
			a.Target = "unit-" + g.Unit
		}
		if g.Relation != secret.NoRelation {
			a.Scope = state.Relation{ID: g.Relation}.String()
		}
		info.Access = append(info.Access, a)
	}
	return info
}

type secretsCmd struct {
	Owner     string `placeholder:"NAME" help:"Only those of this service or unit; <model>: the operators'."`
	Revisions bool   `help:"Show all revisions, in yaml and json."`
	Format    string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

// Run lists the secrets.
func (c secretsCmd) Run(o *operator) error {
	all, err := readChosen(o, secrets.All)
	if err != nil {
		return err
	}
	infos := map[string]secretInfo{}
	t := console.NewTable("ID", "NAME", "OWNER", "ROTATION", "REVISION", "UPDATED")
	for _, r := range all {
		if c.Owner == "" || r.Owner.String() == c.Owner {
			infos[r.ID] = newSecretInfo(r, c.Revisions)
			t.Add("", r.ID, r.Label, r.Owner.String(), cmp.Or(r.Rotate, "never"), strconv.Itoa(r.Latest), formatTime(r.Updated))
		}
	}
	return o.printTable(c.Format, infos, t)
}

type showSecretCmd struct {
	Secret    string `arg:"" help:"Its name, or its URI."`
	Reveal    bool   `help:"Show its content, too."`
	Revision  int    `placeholder:"N" help:"The content of this revision; default: of the newest."`
	Revisions bool   `help:"Show all revisions."`
	Format    string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints the secret.
func (c showSecretCmd) Run(o *operator) error {
	var ring secret.Keyring
	read := func(v *state.View) (map[string]secretInfo, error) {
		r, err := findSecret(v, c.Secret)
		info := newSecretInfo(r, c.Revisions)
		info.Revision = cmp.Or(c.Revision, r.Latest)
		if err == nil && c.Reveal {
			var content secret.Content
			content, err = secrets.Open(v, ring, r, info.Revision)
			info.Content = content.Texts()
		}
		return map[string]secretInfo{r.ID: info}, err
	}
	show := func(s *state.State) error {
		info, err := state.Read(o.ctx, s, read)
		if err != nil {
			return err
		}
		return o.encode(c.Format, info)
	}
	if !c.Reveal {
		return o.openChosen(show)
	}
	return o.openSecrets(func(s *state.State, keys secret.Keyring) error {
		ring = keys
		return show(s)
	})
}

type secretGrantArgs struct {
	Secret   string `arg:"" help:"Its name, or its URI."`
	Services string `arg:"" name:"service,..." help:"The services, all or none."`
}

type grantSecretCmd struct{ secretGrantArgs }

// Run lets the services read the secret.
func (c grantSecretCmd) Run(o *operator) error { return c.setGranted(o, true) }

func (c secretGrantArgs) setGranted(o *operator, may bool) error {
	return o.update(func(tx *state.Tx) error {
		for service := range strings.SplitSeq(c.Services, ",") {
			r, err := findOwnSecret(tx.View, c.Secret)
			if err == nil {
				err = secrets.Grant(tx, r, service, may)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

type revokeSecretCmd struct{ secretGrantArgs }

// Run ends the services' grants.
func (c revokeSecretCmd) Run(o *operator) error { return c.setGranted(o, false) }

type removeSecretCmd struct {
	Secrets  []string `arg:"" name:"secret" help:"Names, or URIs; all are removed, or none."`
	Revision int      `placeholder:"N" help:"This revision only."`
}

// Run removes the secrets.
func (c removeSecretCmd) Run(o *operator) error {
	return o.update(func(tx *state.Tx) error {
		for _, name := range c.Secrets {
			r, err := findOwnSecret(tx.View, name)
			if _, there := r.Revisions[c.Revision]; err == nil && c.Revision != 0 && !there {
				err = fmt.Errorf("secret %q revision %d not found", name, c.Revision)
			}
			if err == nil {
				_, err = secrets.Remove(tx, r, c.Revision)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

type rotateSecretKeyCmd struct {
	Forget bool `help:"Instead, remove the keys of before, once nothing is sealed with them: backups of that time cannot be opened any more."`
}

// Run has all machines know a new key before anything is sealed with it. It may be killed anywhere and run again:
// no key goes by itself.
func (c rotateSecretKeyCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot rotate the key for secrets: %w", err)
	}
	defer lock.Release()
	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		next := slices.Clone(ring)
		if !c.Forget {
			fresh := secret.NewKey()
			if err := o.giveSecretKeys(e, s, append(secret.Keyring{fresh}, ring...)); err != nil {
				return err
			}
			next = append(next, fresh)
			if err := o.giveSecretKeys(e, s, next); err != nil {
				return err
			}
		}
		n, err := o.resealSecrets(s, next)
		switch {
		case err != nil:
			return err
		case c.Forget && n > 0:
			return fmt.Errorf("%s were sealed with an older key, and are sealed anew now: a hook may still use it; run this again later", formatCount(n, "content"))
		case c.Forget:
			return o.giveSecretKeys(e, s, next[len(next)-1:])
		}
		o.note("secrets are sealed with a new key, %s anew; those of before stay, for backups: juju rotate-secret-key --forget removes them", formatCount(n, "content"))
		return nil
	})
}

func (o *operator) resealSecrets(s *state.State, ring secret.Keyring) (total int, err error) {
	all, err := state.Read(o.ctx, s, secrets.All)
	for i, r := range all {
		progress.Report(o.ctx, progress.Steps{What: "secrets sealed", Done: i, Total: len(all)})
		for n := 1; n > 0 && err == nil; total += n {
			err = state.IgnoreNotFound(s.Update(o.ctx, func(tx *state.Tx) (err error) {
				n, err = secrets.Reseal(tx, ring, r.ID)
				return err
			}))
		}
	}
	return total, err
}

// giveSecretKeys writes the keys here, and to each machine that does not have the environment's folder of this host.
func (o *operator) giveSecretKeys(e home.Environment, s *state.State, ring secret.Keyring) error {
	if err := e.SecretKeys().Write(ring); err != nil {
		return err
	}
	data, err := os.ReadFile(string(e.SecretKeys()))
	env, eerr := state.Read(o.ctx, s, (*state.View).Environment)
	machines, merr := state.Read(o.ctx, s, (*state.View).Machines)
	if err := errors.Join(err, eerr, merr); err != nil {
		return err
	}
	for _, m := range machines {
		if m.InstanceID == "" || m.ID == "0" {
			continue
		}
		to, err := o.parts.Providers.Access(e, env, m)
		if err == nil && to.Host != "" {
			err = to.putSecretKeys(data)
		}
		if err != nil {
			return console.Hint(fmt.Errorf("cannot give machine %s the keys for secrets: %w", m.ID, err),
				"nothing is sealed with a key that it does not have; run this again once it is reached")
		}
	}
	return nil
}

// putSecretKeys replaces the file of keys of a machine's environment.
func (a Access) putSecretKeys(data []byte) error {
	file := strconv.Quote(filepath.Join(a.Dir, "..", "..", secretkeys.Name))
	give := a.Run("", "umask 077 && cat >"+file+".new && mv "+file+".new "+file, false)
	give.Stdin = bytes.NewReader(data)
	out, err := give.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %.200s", err, out)
	}
	return err
}
