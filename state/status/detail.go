package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/logs"
	"bijou/state/number"
	"bijou/state/secret"
	"bijou/state/secret/record"
	"bijou/state/text"
)

// UnitDetail is the detailed status of a unit, for `juju show-unit`. Its first fields, up to Relations, have
// Juju 3's keys.
type UnitDetail struct {
	Version       string           `json:"workload-version,omitempty" yaml:"workload-version,omitempty"`
	Machine       string           `json:"machine,omitempty" yaml:"machine,omitempty"`
	OpenedPorts   []string         `json:"opened-ports" yaml:"opened-ports"`
	PublicAddress string           `json:"public-address,omitempty" yaml:"public-address,omitempty"`
	Charm         string           `json:"charm" yaml:"charm"` // as Juju writes it: local:mysql-3
	Leader        bool             `json:"leader" yaml:"leader"`
	Life          state.Life       `json:"life" yaml:"life"`
	Relations     []RelationDetail `json:"relation-info,omitempty" yaml:"relation-info,omitempty"`

	Principal    string                        `json:"subordinate-to,omitempty" yaml:"subordinate-to,omitempty"`
	Subordinates []string                      `json:"subordinates,omitempty" yaml:"subordinates,omitempty"`
	Options      map[string]any                `json:"options,omitempty" yaml:"options,omitempty"` // the options that operators have set
	Storage      map[string]state.StorageState `json:"storage,omitempty" yaml:"storage,omitempty"` // by id
	Secrets      map[string]string             `json:"secrets,omitempty" yaml:"secrets,omitempty"` // the labels of secrets, by id
	Hooks        []HookRun                     `json:"hooks,omitempty" yaml:"hooks,omitempty"`     // the last hooks, the oldest first

	State      string             `json:"state" yaml:"state"` // Unit.State, which Juju does not have
	Workload   Info               `json:"workload-status" yaml:"workload-status"`
	Agent      Info               `json:"juju-status" yaml:"juju-status"` // with the time since the last hook, if the agent is idle
	Error      *UnitStateInfo     `json:"state-info,omitempty" yaml:"state-info,omitempty"`
	Trouble    *state.Trouble     `json:"agent-trouble,omitempty" yaml:"agent-trouble,omitempty"`
	Running    *state.RunningHook `json:"running,omitempty" yaml:"running,omitempty"`
	LastFailed *HookRun           `json:"last-failed,omitempty" yaml:"last-failed,omitempty"`
	Next       string             `json:"next,omitempty" yaml:"next,omitempty"`   // the agent's next step
	Queue      []string           `json:"queue,omitempty" yaml:"queue,omitempty"` // the queued hooks and actions
	WaitsFor   string             `json:"waits-for,omitempty" yaml:"waits-for,omitempty"`
	ToDo       []string           `json:"to-do,omitempty" yaml:"to-do,omitempty"` // the operator's possible answers
	Advice     []Advice           `json:"-" yaml:"-"`                             // the same as ToDo, in parts
}

// maxFailedLines is how many of the last log lines of a failed hook are shown.
const maxFailedLines = 10

// ReadUnit reads the detailed status of a unit. It ignores o.Globs. It reads only a few lists, even in large
// environments. If no hook runs, it calls nextStep to get the next step of the unit's agent, which is empty if the
// agent has nothing to do. It returns settings and options as they are stored. Call [UnitDetail.HideSettings] if
// passwords in them must not be shown. ReadUnit returns [state.ErrNotFound] if there is no such unit.
func ReadUnit(
	v *state.View,
	name string,
	o Options,
	nextStep func(v *state.View, unit string) (string, error),
) (d UnitDetail, err error) {
	u, err := v.Unit(name)
	if err != nil {
		return d, err
	}

	o.Globs = []string{name}
	s, err := Read(v, o)
	if err != nil {
		return d, err
	}

	service := s.Services[u.Service]
	unitView := service.Units[name]
	d = UnitDetail{
		Version:       unitView.Version,
		Machine:       u.Machine,
		OpenedPorts:   append([]string{}, unitView.OpenPorts...), // not nil, which JSON would print as null
		PublicAddress: unitView.PublicAddress,
		Charm:         charm.ShortURL(cmp.Or(u.Charm, service.Charm)),
		Leader:        unitView.Leader,
		Life:          u.Life,
		Principal:     u.Principal,
		Subordinates:  u.Subordinates,
		State:         unitView.State,
		Workload:      unitView.WorkloadInfo(),
		Agent:         unitView.AgentInfo(),
		Error:         unitView.Info,
		Trouble:       unitView.Trouble,
		Running:       unitView.Running,
	}

	if err := d.readRelations(v, u, unitView); err != nil {
		return d, err
	}
	if err := d.readProperties(v, u); err != nil {
		return d, err
	}
	if err := d.readHooks(v, name, o); err != nil {
		return d, err
	}
	if err := d.readQueue(v, name); err != nil {
		return d, err
	}

	if d.Running == nil {
		d.Next, err = nextStep(v, name)
		if err != nil {
			return d, err
		}
	}

	d.explain(name, unitView, s.Machines[u.Machine])
	return d, nil
}

// readProperties reads the options of the unit's service, and the unit's storage and secrets. It reads all
// secrets that the unit or its service owns, that the unit has read, or that operators have granted to the
// service.
func (d *UnitDetail) readProperties(v *state.View, u state.Unit) error {
	c, err := v.Config(u.Service)
	if err != nil {
		return err
	}
	d.Options = number.DictionaryForPrinting(c.Values)

	storage, err := v.UnitStorages(u.Name)
	if err != nil {
		return err
	}
	d.Storage = map[string]state.StorageState{}
	for _, s := range storage {
		d.Storage[s.ID] = s.State
	}

	own, err := record.IndexOf(v, secret.Owner{Unit: u.Name})
	if err != nil {
		return err
	}
	shared, err := record.IndexOf(v, secret.Owner{Service: u.Service})
	if err != nil {
		return err
	}
	records, err := record.Read(v, slices.Concat(own.Owned, own.Consumed, shared.Owned, shared.Granted))
	if err != nil {
		return err
	}
	d.Secrets = map[string]string{}
	for _, r := range records {
		d.Secrets[r.ID] = r.Label
	}

	return nil
}

// readHooks reads the last hooks that the unit has run, and the log lines of the last one that failed. It also
// sets since when an idle agent is idle.
func (d *UnitDetail) readHooks(v *state.View, unit string, o Options) error {
	runs, err := v.HookRuns(unit)
	if err != nil {
		return err
	}
	if !o.Secrets {
		HideHookRuns(runs) // hides the secrets in runs
	}

	d.Hooks = NewHookRuns(runs, nil) // without the running hook, which is in d.Running
	if n := len(runs); n > 0 && d.Agent.Current == "idle" {
		d.Agent.Since = runs[n-1].Ended
	}

	var nextStart time.Time // when the hook after r, in the loop below, has started; zero if there is none
	if d.Running != nil {
		nextStart = d.Running.Since
	}

	for i, r := range slices.Backward(runs) {
		if r.Failure != "" {
			failed := d.Hooks[i]
			d.LastFailed = &failed
			return d.LastFailed.readLines(v, unit, nextStart, o)
		}
		nextStart = r.Started
	}

	return nil
}

// readLines reads the last maxFailedLines messages that a hook run has logged, and only the first line of each.
// nextStart is the start of the next run, or zero if there is none.
func (f *HookRun) readLines(v *state.View, unit string, nextStart time.Time, o Options) error {
	lines, err := logs.Read(v, logs.Filter{Sources: []string{unit}, Since: f.Started})
	if err != nil {
		return err
	}

	for _, l := range lines {
		isLater := !nextStart.IsZero() && !l.Time.Before(nextStart)
		if l.Hook != f.Hook || isLater {
			continue
		}

		if !o.Secrets {
			hideSecrets(&l.Message)
		}
		f.Lines = append(f.Lines, text.FirstLine(l.Message))
	}

	f.Lines = f.Lines[max(0, len(f.Lines)-maxFailedLines):]
	return nil
}

// HookRun is a past or running hook, as `juju hook-history` shows it.
type HookRun struct {
	Hook     string    `yaml:"hook" json:"hook"`
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Started  time.Time `yaml:"started" json:"started"`
	Seconds  float64   `yaml:"seconds" json:"seconds"`
	Exit     int       `yaml:"exit" json:"exit"` // -1 if it does not have an exit code
	Failure  string    `yaml:"failure,omitempty" json:"failure,omitempty"`
	Changes  []string  `yaml:"changes,omitempty" json:"changes,omitempty"`
	More     int       `yaml:"further-changes,omitempty" json:"further-changes,omitempty"`
	Running  bool      `yaml:"running,omitempty" json:"running,omitempty"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"`
	Lines    []string  `yaml:"lines,omitempty" json:"lines,omitempty"`   // the hook's last log lines; only set for UnitDetail.LastFailed
	Number   int64     `yaml:"number,omitempty" json:"number,omitempty"` // the hook's number among the unit's hooks, from 1; 0 while it runs
}

// NewHookRuns returns the hooks that have run, followed by the running hook if there is one.
func NewHookRuns(runs []state.HookRun, running *state.RunningHook) []HookRun {
	shown := make([]HookRun, len(runs))
	for i, r := range runs {
		shown[i] = HookRun{
			Hook:     r.Hook,
			Relation: r.Relation,
			Remote:   r.Remote,
			Started:  r.Started,
			Seconds:  r.Ended.Sub(r.Started).Seconds(),
			Exit:     r.Exit,
			Failure:  r.Failure,
			Changes:  r.Changes,
			More:     r.More,
			Number:   NumberOf(r),
		}
	}
	if running != nil {
		shown = append(shown, HookRun{
			Hook:     running.Name,
			Relation: running.Relation,
			Remote:   running.Remote,
			Started:  running.Since,
			Seconds:  time.Since(running.Since).Seconds(),
			Exit:     -1, // it has no exit code yet
			Running:  true,
			Holder:   running.Holder,
		})
	}

	return shown
}

// NumberOf returns the number of a hook in a unit's history, as operators see it.
func NumberOf(r state.HookRun) int64 { return r.Seq + 1 }

// HideHookRuns hides secrets in the failures and status messages of hooks, and in the settings that they have
// changed.
func HideHookRuns(runs []state.HookRun) {
	for i := range runs {
		hideSecrets(&runs[i].Failure)
		if status := runs[i].Said; status != nil {
			hideSecrets(&status.Message)
		}
		for n := range runs[i].Changes {
			hideSecrets(&runs[i].Changes[n])
		}
	}
}

// RelationDetail is one relation of a unit, with the settings of both sides.
type RelationDetail struct {
	ID              int                     `json:"relation-id" yaml:"relation-id"`
	Endpoint        string                  `json:"endpoint" yaml:"endpoint"`
	RelatedEndpoint string                  `json:"related-endpoint" yaml:"related-endpoint"`
	AppData         map[string]string       `json:"application-data" yaml:"application-data"` // the related service's settings
	LocalUnit       RelationData            `json:"local-unit" yaml:"local-unit"`
	RelatedUnits    map[string]RelationData `json:"related-units" yaml:"related-units"`

	Service      string            `json:"related-application" yaml:"related-application"`
	LocalAppData map[string]string `json:"local-application-data,omitempty" yaml:"local-application-data,omitempty"`
	RelationUnit `yaml:",inline"`
}

// RelationData has the settings of a unit in a relation.
type RelationData struct {
	InScope bool              `json:"in-scope" yaml:"in-scope"`
	Data    map[string]string `json:"data" yaml:"data"`
}

// readRelations reads the details of the relations that the unit is part of.
func (d *UnitDetail) readRelations(v *state.View, u state.Unit, unitView Unit) error {
	relations, err := v.ServiceRelations(u.Service)
	if err != nil {
		return err
	}

	for _, r := range relations {
		// The relation is one of the service, so it has the endpoint.
		own, _ := r.Endpoint(u.Service)
		unitState, isPart := unitView.Relations[own.Name].Relations[r.String()]
		if !isPart {
			continue
		}
		detail, err := readRelationDetail(v, r, u)
		if err != nil {
			return err
		}

		detail.RelationUnit = unitState
		d.Relations = append(d.Relations, detail)
	}

	return nil
}

// readRelationDetail reads a relation from a unit's point of view: the settings of both services, of the
// unit, and of its remote units. A unit that has not entered the relation sees no settings of units.
func readRelationDetail(v *state.View, r state.Relation, u state.Unit) (d RelationDetail, err error) {
	own, _ := r.Endpoint(u.Service)
	other := r.Other(u.Service)
	otherApp, err := v.AppSettings(r.ID, other.Service)
	// Damaged settings are shown as empty.
	if ignoreDamage(v, err) != nil {
		return d, err
	}
	localApp, err := v.AppSettings(r.ID, u.Service)
	if ignoreDamage(v, err) != nil {
		return d, err
	}

	d = RelationDetail{
		ID:              r.ID,
		Endpoint:        own.Name,
		RelatedEndpoint: other.Name,
		AppData:         otherApp.Values,
		LocalUnit:       RelationData{Data: map[string]string{}},
		RelatedUnits:    map[string]RelationData{},
		Service:         other.Service,
		LocalAppData:    localApp.Values,
	}

	self, isMember, err := v.Member(r.ID, u.Name)
	if err != nil {
		return d, err
	}
	if !isMember {
		return d, nil
	}

	others, err := v.MembersOf(r.ID, other.Service)
	if err != nil {
		return d, err
	}

	// In a peer relation, others already contains self. Then the loop reads it twice, with the same result.
	for _, m := range append(others, self) {
		settings, err := v.Settings(r.ID, m.Unit)
		if ignoreDamage(v, err) != nil {
			return d, err
		}

		data := RelationData{InScope: true, Data: settings.Values}
		// In a relation of the scope container, a unit sees only units with its own principal.
		switch {
		case m.Unit == u.Name:
			d.LocalUnit = data
		case r.Scope == charm.Global || m.Principal == self.Principal:
			d.RelatedUnits[m.Unit] = data
		}
	}

	return d, nil
}

// ignoreDamage returns nil for the error of damaged settings, and any other error unchanged. The view reports the
// damage.
func ignoreDamage(v *state.View, err error) error {
	if v.Skips(err) {
		return nil
	}
	return err
}

// HideSettings hides secrets in settings and options, as the log does. It hides the whole value if the name
// of the setting or option is that of a secret, and otherwise the secrets in the value.
func (d *UnitDetail) HideSettings() {
	for name, value := range d.Options {
		shown := fmt.Sprint(value)
		if hidden := hideSetting(name, shown); hidden != shown {
			d.Options[name] = hidden
		}
	}

	for _, r := range d.Relations {
		hideAllSettings(r.AppData)
		hideAllSettings(r.LocalAppData)
		hideAllSettings(r.LocalUnit.Data)
		for _, related := range r.RelatedUnits {
			hideAllSettings(related.Data)
		}
	}
}

// hideAllSettings hides the secrets in the settings, by their names and values.
func hideAllSettings(settings map[string]string) {
	for name, value := range settings {
		settings[name] = hideSetting(name, value)
	}
}

// hideSetting returns the value of the named setting without secrets.
func hideSetting(name, value string) string {
	if text.IsSecret(name) {
		return text.Hidden
	}
	return text.HideSecrets(value)
}
