package uniter

import (
	"cmp"
	"errors"
	"slices"

	"bijou/agent/hook"
	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// readSnapshot reads everything on which the unit's next step depends, in one view. madeHooks are the files
// in the charm's hooks directory.
func readSnapshot(v *state.View, name string, madeHooks []string) (decide.Snapshot, error) {
	if err := v.PrefetchUnit(name); err != nil {
		return decide.Snapshot{}, err
	}

	own, err := v.Uniter(name)
	if err != nil {
		return decide.Snapshot{}, err
	}
	s, err := readSurroundings(v, name, own, decide.CharmHooks{Made: madeHooks})
	if err != nil || s.Gone {
		return s, err
	}

	return s, readMembers(v, &s)
}

// readSurroundings reads everything except the members of the unit's relations. It does not read the unit's
// own records, which the caller passes as own. Only a missing record of the unit itself marks the snapshot as
// gone. Any other missing record is an error, since the agent removes the directory of a unit that is gone.
// known holds the charm's hooks from the last read.
func readSurroundings(
	v *state.View,
	name string,
	own state.Uniter,
	known decide.CharmHooks,
) (s decide.Snapshot, err error) {
	s.Unit, err = v.Unit(name)
	if errors.Is(err, state.ErrNotFound) {
		return decide.Snapshot{Gone: true}, nil
	}
	if err != nil {
		return s, err
	}

	s.Uniter = own
	if s.Unit.Life == state.Dead {
		return s, nil // nothing else matters for a unit that is gone
	}
	service, err := readSettings(v, &s)
	if err != nil {
		return s, err
	}
	if s.Hooks, err = readCharmHooks(v, service, s.Uniter.Workflow.Charm, known); err != nil {
		return s, err
	}
	if err := readLeader(v, &s); err != nil {
		return s, err
	}

	if deployed := s.Uniter.Workflow.Charm; deployed != "" && deployed != s.Charm {
		if s.Upgrade, err = v.Upgrade(service.Name); err != nil {
			return s, err
		}
	}

	if err := readOperatorWishes(v, &s); err != nil {
		return s, err
	}

	if s.Relations, err = readRelations(v, s.Unit); err != nil {
		return s, err
	}

	s.AddVanished()
	if s.Storages, err = v.OwnStorages(name); err != nil {
		return s, err
	}

	return s, readSecrets(v, &s)
}

// readOperatorWishes reads the next action and the debug session that operators have asked for.
func readOperatorWishes(v *state.View, s *decide.Snapshot) error {
	action, hasAction, err := actions.Next(v, s.Unit.Name)
	if err != nil {
		return err
	}
	if hasAction {
		s.Action = &action
	}

	debug, hasDebug, err := actions.ReadDebug(v, s.Unit.Name)
	if err != nil {
		return err
	}
	if hasDebug {
		s.Debug = &debug
	}

	return nil
}

// readSettings reads the unit's service, and the versions and settings that decide which hooks run.
func readSettings(v *state.View, s *decide.Snapshot) (service state.Service, err error) {
	if service, err = v.Service(s.Unit.Service); err != nil {
		return service, err
	}
	env, err := v.Environment()
	if err != nil {
		return service, err
	}

	config, err := v.Config(service.Name)
	if err != nil {
		return service, err
	}

	s.Charm = service.Charm
	s.ConfigVersion = config.Version
	s.Resources = service.ResourcesVersion
	s.RetryHooks = env.RetryHooks()
	s.StatusInterval = env.StatusInterval()
	s.HookTimeout = env.HookTimeout()
	s.Environment = env
	s.JujuVersion = service.PromisedVersion()
	return service, nil
}

// readRelations reads the relations that concern the unit, without their members. Relations with units of
// other principals do not concern a subordinate.
func readRelations(v *state.View, unit state.Unit) (map[int]decide.Relation, error) {
	stored, err := v.ServiceRelations(unit.Service)
	if err != nil {
		return nil, err
	}
	all := make(map[int]decide.Relation, len(stored))

	for _, r := range stored {
		concerns, err := v.IsRelationFor(r, unit)
		if err != nil {
			return nil, err
		}
		if !concerns {
			continue
		}

		// The relation concerns the unit, so its service has an endpoint.
		end, _ := r.Endpoint(unit.Service)
		one := decide.Relation{
			Relation: hook.Relation{
				ID:            r.ID,
				Name:          end.Name,
				RemoteService: r.Other(unit.Service).Service,
				Peer:          r.IsPeer(),
			},
			Life:        r.Life,
			ToPrincipal: isToPrincipal(r, unit),
		}

		if r.Scope == charm.Container {
			one.Principal = cmp.Or(unit.Principal, unit.Name)
		}
		all[r.ID] = one
	}

	return all, nil
}

// isToPrincipal reports whether the relation connects the unit, a subordinate, to its principal's service.
func isToPrincipal(r state.Relation, unit state.Unit) bool {
	service, _, err := charm.ParseUnit(unit.Principal)
	return err == nil && r.Scope == charm.Container && r.Other(unit.Service).Service == service
}

// readMembers reads the remote members that concern the unit, for each relation. A remote service that has
// its own settings counts as a member.
func readMembers(v *state.View, s *decide.Snapshot) error {
	for id, r := range s.Relations {
		members, err := v.MembersOf(id, r.RemoteService)
		if err != nil {
			return err
		}

		r.Members = slices.DeleteFunc(members, func(m state.Member) bool { return !concernsUnit(s, r, m) })
		m, ok, err := readMembership(v, id, r.RemoteService)
		if err != nil {
			return err
		}

		if ok {
			r.Members = append(r.Members, m)
		}
		s.Relations[id] = r
	}

	return nil
}

// readMember reads one member of a relation again. It replaces, inserts or deletes the member in the
// snapshot, and keeps the members sorted.
func readMember(v *state.View, s *decide.Snapshot, of decide.Member) error {
	r, known := s.Relations[of.Relation]
	if !known {
		return nil
	}
	m, in, err := readMembership(v, of.Relation, of.Name)
	if err != nil {
		return err
	}

	in = in && concernsUnit(s, r, m)
	i, was := slices.BinarySearchFunc(r.Members, of.Name, func(m state.Member, unit string) int {
		return charm.CompareUnits(m.Unit, unit)
	})

	switch {
	case in && was:
		r.Members[i] = m
	case in:
		r.Members = slices.Insert(r.Members, i, m)
	case was:
		r.Members = slices.Delete(r.Members, i, i+1)
	}

	s.Relations[of.Relation] = r
	return nil
}

// readMembership reads the membership of a unit, or of a service. in is false if the unit or service is not a
// member. A service is a member once it has set its own settings. A member whose record cannot be decoded
// counts as absent, since another agent wrote that record.
func readMembership(v *state.View, id int, name string) (m state.Member, in bool, err error) {
	if hook.IsUnit(name) {
		m, in, err = v.Member(id, name)
	} else {
		m.Unit = name
		m.Version, err = v.AppVersion(id, name)
		in = m.Version > 0
	}

	if v.Skips(err) {
		return m, false, nil
	}
	return m, in, err
}

// concernsUnit reports whether m concerns the unit. m is a remote unit, a peer, or a service with its own
// settings. A relation in container scope concerns only units that share a principal.
func concernsUnit(s *decide.Snapshot, r decide.Relation, m state.Member) bool {
	return m.Unit != s.Unit.Name && (r.Principal == "" || m.Principal == r.Principal || !hook.IsUnit(m.Unit))
}

// readLeader reads the service's leader, if the charm has a hook about leadership.
func readLeader(v *state.View, s *decide.Snapshot) (err error) {
	if !s.Hooks.HasLeadership() {
		return nil
	}
	if s.Leader.Unit, err = v.Leader(s.Unit.Service); err != nil {
		return err
	}
	s.Leader.Version, err = v.LeaderSettingsVersion(s.Unit.Service)
	// The leader wrote a record that cannot be decoded. This unit continues without it.
	if v.Skips(err) {
		return nil
	}
	return err
}

// readSecrets reads the secrets that concern the unit. If there are none it needs no round trip, since the
// indexes were prefetched with the unit's record.
func readSecrets(v *state.View, s *decide.Snapshot) error {
	own, err := record.IndexOf(v, secret.Owner{Unit: s.Unit.Name})
	if err != nil {
		return err
	}
	shared, err := record.IndexOf(v, secret.Owner{Service: s.Unit.Service})
	if err != nil {
		return err
	}

	s.Secrets = decide.Secrets{Managed: own.Owned, Granted: shared.Granted}
	if len(shared.Owned) > 0 {
		leader, err := v.Leader(s.Unit.Service)
		if err != nil {
			return err
		}

		if leader == s.Unit.Name {
			s.Secrets.Managed = slices.Concat(own.Owned, shared.Owned)
		}
	}

	s.Secrets.Records, err = record.Read(v, slices.Concat(own.Consumed, s.Secrets.Managed))
	return err
}

// readCharmHooks returns the hooks of the charm with this URL. It returns known if known holds the hooks of
// the same charm, since a charm never changes.
func readCharmHooks(
	v *state.View,
	service state.Service,
	url string,
	known decide.CharmHooks,
) (decide.CharmHooks, error) {
	if url == "" || url == known.Charm {
		return known, nil
	}

	c, err := v.Charm(url)
	if errors.Is(err, state.ErrNotFound) {
		// The step that needs the charm returns the error.
		return decide.CharmHooks{Made: known.Made}, nil
	}
	if err != nil {
		return decide.CharmHooks{}, err
	}

	h := decide.NewCharmHooks(url, c, known.Made)
	h.Dialect = service.DialectOf(c)
	return h, nil
}

// Owed describes the step that the unit's agent would take now. If there is none, it describes the unit's
// first open request to the provisioner. It returns an empty string if the agent would only wait for changes.
// A due update-status does not count as a step.
func Owed(v *state.View, unit string) (string, error) {
	s, err := readSnapshot(v, unit, nil)
	if err != nil {
		return "", err
	}

	s.Now = now()
	s.StatusInterval = 0
	next := decide.Next(s)
	if _, waits := next.(decide.Wait); !waits {
		return next.String(), nil
	}

	requested, err := v.UnitRequests(unit)
	if err != nil || len(requested) == 0 {
		return "", err
	}

	return "wait for the provisioner: " + requested[0].String(), nil
}
