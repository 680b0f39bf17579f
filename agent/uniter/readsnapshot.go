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

// readSnapshot reads from the store everything on which the next step of the named unit depends, in one view.
// madeHooks are the files in the charm's hooks directory.
func readSnapshot(v *state.View, name string, madeHooks []string) (decide.Snapshot, error) {
	if err := v.PrefetchUnit(name); err != nil {
		return decide.Snapshot{}, err
	}

	own, err := v.Uniter(name)
	if err != nil {
		return decide.Snapshot{}, err
	}
	known := decide.CharmHooks{Made: madeHooks} // Charm is empty, so the charm's hooks are read
	s, err := readSurroundings(v, name, own, known)
	if err != nil {
		return s, err
	}
	if s.Gone {
		return s, nil
	}

	err = readMembers(v, &s)
	return s, err
}

// readSurroundings reads everything except the members of the unit's relations and the records that only the
// unit's loop writes. The caller passes the latter as own. known holds the charm's hooks from the last read. For
// a dead unit readSurroundings reads only the unit's record.
//
// If the unit's own record is missing, readSurroundings sets only Gone. No other missing record sets Gone,
// since the agent removes the directory of a unit that is gone.
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
		return s, nil // the agent only removes the unit
	}

	service, err := readSettings(v, &s)
	if err != nil {
		return s, err
	}
	deployed := s.Uniter.Workflow.Charm
	s.Hooks, err = readCharmHooks(v, service, deployed, known)
	if err != nil {
		return s, err
	}
	if err := readLeader(v, &s); err != nil {
		return s, err
	}

	// A unit that already runs its service's charm has nothing to upgrade.
	if deployed != "" && deployed != s.Charm {
		if s.Upgrade, err = v.Upgrade(service.Name); err != nil {
			return s, err
		}
	}
	if err := readOperatorRequests(v, &s); err != nil {
		return s, err
	}

	if s.Relations, err = readRelations(v, s.Unit); err != nil {
		return s, err
	}
	s.AddVanishedRelations() // adds relations that the unit has entered, and that are gone from the store

	if s.Storages, err = v.OwnStorages(name); err != nil {
		return s, err
	}
	// Not `return s, readSecrets(v, &s)`: that could copy s before readSecrets fills it.
	err = readSecrets(v, &s)
	return s, err
}

// readOperatorRequests reads the next action and the debug session that operators have requested.
func readOperatorRequests(v *state.View, s *decide.Snapshot) error {
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

// readSettings reads into s the environment, and the settings and versions that determine which hooks run. It
// returns the unit's service.
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
	s.JujuVersion = service.PromisedVersion() // as the service's hooks see it
	return service, nil
}

// readRelations reads the relations that concern the unit, without their members. Relations with units of
// other principals do not concern a subordinate.
func readRelations(v *state.View, unit state.Unit) (map[int]decide.Relation, error) {
	stored, err := v.ServiceRelations(unit.Service)
	if err != nil {
		return nil, err
	}

	relations := make(map[int]decide.Relation, len(stored))
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
		relation := decide.Relation{
			Relation: hook.Relation{
				ID:            r.ID,
				Name:          end.Name,
				RemoteService: r.Other(unit.Service).Service,
				Peer:          r.IsPeer(),
			},
			Life:        r.Life,
			ToPrincipal: isToPrincipal(r, unit),
		}

		// A unit that is not a subordinate is the principal itself.
		if r.Scope == charm.Container {
			relation.Principal = cmp.Or(unit.Principal, unit.Name)
		}
		relations[r.ID] = relation
	}

	return relations, nil
}

// isToPrincipal reports whether the relation connects the unit, a subordinate, to its principal's service.
func isToPrincipal(r state.Relation, unit state.Unit) bool {
	service, _, err := charm.ParseUnit(unit.Principal) // fails for a unit without a principal
	return err == nil && r.Scope == charm.Container && r.Other(unit.Service).Service == service
}

// readMembers reads the remote members that concern the unit, for each relation. A remote service that has
// its own settings counts as a member, and comes last.
func readMembers(v *state.View, s *decide.Snapshot) error {
	for id, r := range s.Relations {
		members, err := v.MembersOf(id, r.RemoteService)
		if err != nil {
			return err
		}
		r.Members = slices.DeleteFunc(members, func(m state.Member) bool { return !concernsUnit(s, r, m) })

		service, hasSettings, err := readMembership(v, id, r.RemoteService)
		if err != nil {
			return err
		}
		if hasSettings {
			r.Members = append(r.Members, service)
		}
		s.Relations[id] = r
	}

	return nil
}

// readMember reads one member of a relation again. It replaces, inserts or deletes the member in the
// snapshot, and keeps the members sorted: units by name and number, and then the remote service.
func readMember(v *state.View, s *decide.Snapshot, stale decide.Member) error {
	r, known := s.Relations[stale.Relation]
	if !known {
		return nil // the relation is gone, or does not concern the unit
	}
	m, in, err := readMembership(v, stale.Relation, stale.Name)
	if err != nil {
		return err
	}

	isMember := in && concernsUnit(s, r, m)
	i, wasMember := slices.BinarySearchFunc(r.Members, stale.Name, func(m state.Member, unit string) int {
		return charm.CompareUnits(m.Unit, unit)
	})
	switch {
	case isMember && wasMember:
		r.Members[i] = m
	case isMember:
		r.Members = slices.Insert(r.Members, i, m)
	case wasMember:
		r.Members = slices.Delete(r.Members, i, i+1)
	}

	s.Relations[stale.Relation] = r
	return nil
}

// readMembership reads the membership of a unit or service in a relation. in is false if the unit or service
// is not a member. A service is a member once it has set its own settings. A member whose record is damaged
// does not count as a member: another agent wrote that record, and this unit continues without it.
func readMembership(v *state.View, id int, name string) (m state.Member, in bool, err error) {
	if hook.IsUnit(name) {
		m, in, err = v.Member(id, name)
	} else {
		m.Unit = name
		m.Version, err = v.AppVersion(id, name)
		in = m.Version > 0
	}

	if v.Skips(err) { // the record is damaged, and the view reports that
		return m, false, nil
	}
	return m, in, err
}

// concernsUnit reports whether a member of the relation concerns the snapshot's unit. A member is a remote
// unit, a peer, the unit itself, or a service with its own settings. In container scope, only units with the
// same principal concern each other.
func concernsUnit(s *decide.Snapshot, r decide.Relation, m state.Member) bool {
	if m.Unit == s.Unit.Name {
		return false
	}

	isGlobal := r.Principal == ""
	isService := !hook.IsUnit(m.Unit)
	return isGlobal || isService || m.Principal == r.Principal
}

// readLeader reads the service's leader and the version of the leader's settings, if the charm has a hook
// about leadership.
func readLeader(v *state.View, s *decide.Snapshot) (err error) {
	if !s.Hooks.HasLeadership() {
		return nil
	}
	if s.Leader.Unit, err = v.Leader(s.Unit.Service); err != nil {
		return err
	}

	s.Leader.Version, err = v.LeaderSettingsVersion(s.Unit.Service)
	if v.Skips(err) {
		return nil // the leader wrote a damaged record, and this unit continues without it
	}
	return err
}

// readSecrets reads the records of the secrets that the unit has read or manages, and the ids of the secrets
// that operators have granted to its service. The leader also manages its service's secrets. Without records
// to read, readSecrets needs no round trip, since PrefetchUnit has already read the indexes and the leader.
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

// readCharmHooks returns the hooks of the charm with this URL. If known holds the hooks of the same charm, or
// url is empty, it returns known. A charm with the same URL never changes. If the store does not contain the
// charm, readCharmHooks returns only the made hooks of known.
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
		// The step that needs the charm returns an error later.
		return decide.CharmHooks{Made: known.Made}, nil
	}
	if err != nil {
		return decide.CharmHooks{}, err
	}

	h := decide.NewCharmHooks(url, c, known.Made)
	h.Dialect = service.DialectOf(c)
	return h, nil
}

// Owed describes the step that the unit's agent would take now. If there is no such step, Owed describes the
// unit's first open request to the provisioner. It returns an empty string if the agent would only wait for
// changes. A due update-status hook does not count as a step.
func Owed(v *state.View, unit string) (string, error) {
	// The charm's directory is on the unit's machine, so hooks that the charm has made there are unknown.
	s, err := readSnapshot(v, unit, nil)
	if err != nil {
		return "", err
	}

	s.Now = now()
	s.StatusInterval = 0 // no update-status hook becomes due
	next := decide.Next(s)
	if _, isWait := next.(decide.Wait); !isWait {
		return next.String(), nil
	}

	requests, err := v.UnitRequests(unit)
	if err != nil {
		return "", err
	}
	if len(requests) == 0 {
		return "", nil
	}
	return "wait for the provisioner: " + requests[0].String(), nil
}
