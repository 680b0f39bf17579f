package juju

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// secretInfo is a secret as Juju's own clients show it.
type secretInfo struct {
	Revision    int             `json:"revision" yaml:"revision"`
	Expires     string          `json:"expires,omitempty" yaml:"expires,omitempty"`
	Rotation    string          `json:"rotation,omitempty" yaml:"rotation,omitempty"`
	Rotates     string          `json:"rotates,omitempty" yaml:"rotates,omitempty"`
	Owner       string          `json:"owner" yaml:"owner"`
	Description string          `json:"description,omitempty" yaml:"description,omitempty"`
	Name        string          `json:"name,omitempty" yaml:"name,omitempty"`   // the operators' name for the secret
	Label       string          `json:"label,omitempty" yaml:"label,omitempty"` // the owner's label for the secret
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

// revealedContent is the content of a secret. In JSON it is below a key "Data", as in Juju's clients.
type revealedContent map[string]string

// MarshalJSON puts the content below the key "Data".
func (c revealedContent) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]map[string]string{"Data": c})
}

// newSecretInfo returns a secret's metadata as Juju prints it. withRevisions adds the list of all revisions.
func newSecretInfo(r secret.Record, withRevisions bool) secretInfo {
	info := secretInfo{
		Revision:    r.Latest,
		Rotation:    r.Rotate,
		Rotates:     formatTime(r.RotateAt),
		Owner:       r.Owner.String(),
		Description: r.Description,
		Label:       r.Label,
		Created:     formatTime(r.Created),
		Updated:     formatTime(r.Updated),
		Expires:     formatTime(r.Revisions[r.Latest].Expires),
	}

	// The label of an operator's secret is its name.
	if r.Owner == (secret.Owner{}) {
		info.Name = r.Label
		info.Label = ""
	}

	if withRevisions {
		for _, n := range slices.Sorted(maps.Keys(r.Revisions)) {
			rev := r.Revisions[n]
			// The content of a revision never changes, so its last update is its creation.
			info.Revisions = append(info.Revisions, revisionInfo{
				Revision: n,
				Backend:  "internal",
				Created:  formatTime(rev.Created),
				Updated:  formatTime(rev.Created),
				Expires:  formatTime(rev.Expires),
			})
		}
	}

	for _, g := range r.Grants {
		a := accessInfo{Target: "application-" + g.Service, Scope: "model", Role: "view"}
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
	Owner      string `placeholder:"NAME" help:"Show only secrets of this application or unit; <model> stands for the operators."`
	Revisions  bool   `help:"Show all revisions, in yaml and json."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// Run lists the secrets, or only the secrets of --owner.
func (c secretsCmd) Run(o *operator) error {
	secrets, err := readChosen(o, record.All)
	if err != nil {
		return err
	}

	infos := map[string]secretInfo{}
	t := console.NewTable("ID", "NAME", "OWNER", "ROTATION", "REVISION", "UPDATED")
	for _, r := range secrets {
		if c.Owner != "" && r.Owner.String() != c.Owner {
			continue
		}

		infos[r.ID] = newSecretInfo(r, c.Revisions)
		t.Add(console.Plain, r.ID, r.Label, r.Owner.String(), cmp.Or(r.Rotate, "never"), strconv.Itoa(r.Latest),
			r.Updated.Local().Format(time.DateTime))
	}

	return o.printTable(c.Format, infos, t)
}
