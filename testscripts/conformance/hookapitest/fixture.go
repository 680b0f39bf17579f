package hookapitest

import "bijou/hookenv/hookapi"

// Standard returns the world of the suite. wordpress/0 is the local unit. wordpress/0 and wordpress/1 are
// related to mysql/0 and mysql/1 in relation 0, to haproxy/0 in relation 1, and to each other in the peer
// relation 2. mysql/2 has departed from relation 0. Relation 3 connects mysql and backup, without
// wordpress.
func Standard() World {
	return World{
		Unit:           "wordpress/0",
		Units:          []string{"wordpress/0", "wordpress/1", "mysql/0", "mysql/1", "mysql/10", "haproxy/0", "backup/0"},
		PrivateAddress: "10.0.3.7",
		PublicAddress:  "203.0.113.10",
		Config:         map[string]any{"title": "My Title", "port": int64(8080), "ratio": 0.5, "monsters": false, "empty": nil},
		Relations:      []Relation{standardDB(), standardWebsite(), standardPeer(), standardBackup()},
	}
}

func standardDB() Relation {
	return Relation{
		Relation: hookapi.Relation{ID: 0, Interface: "mysql", Scope: "global", Ends: []hookapi.End{
			{Service: "mysql", Name: "server", Role: hookapi.Provides, Units: []string{"mysql/0", "mysql/1", "mysql/10"}},
			{Service: "wordpress", Name: "db", Role: hookapi.Consumes, Units: []string{"wordpress/0", "wordpress/1"}},
		}},
		Settings: map[string]map[string]string{
			"wordpress/0": {"private-address": "10.0.3.7"},
			"wordpress/1": {"private-address": "10.0.3.11"},
			"mysql/0":     {"private-address": "10.0.3.8", "user": "root", "password": "s3cr3t"},
			"mysql/1":     {"private-address": "10.0.3.9"},
			"mysql/2":     {"private-address": "10.0.3.12", "user": "departed"},
			"mysql/10":    {"private-address": "10.0.3.13"},
		},
		Apps: map[string]map[string]string{"mysql": {"app": "data"}, "wordpress": {"mine": "yes"}},
	}
}

func standardWebsite() Relation {
	return Relation{
		Relation: hookapi.Relation{ID: 1, Interface: "http", Scope: "global", Ends: []hookapi.End{
			{Service: "wordpress", Name: "website", Role: hookapi.Provides, Units: []string{"wordpress/0", "wordpress/1"}},
			{Service: "haproxy", Name: "reverseproxy", Role: hookapi.Consumes, Units: []string{"haproxy/0"}},
		}},
		Settings: map[string]map[string]string{
			"wordpress/0": {"private-address": "10.0.3.7"},
			"wordpress/1": {"private-address": "10.0.3.11"},
			"haproxy/0":   {"private-address": "10.0.3.20"},
		},
	}
}

func standardPeer() Relation {
	return Relation{
		Relation: hookapi.Relation{ID: 2, Interface: "cluster", Scope: "global", Ends: []hookapi.End{
			{Service: "wordpress", Name: "peer", Role: hookapi.Peers, Units: []string{"wordpress/0", "wordpress/1"}},
		}},
		Settings: map[string]map[string]string{
			"wordpress/0": {"private-address": "10.0.3.7"},
			"wordpress/1": {"private-address": "10.0.3.11"},
		},
	}
}

func standardBackup() Relation {
	return Relation{
		Relation: hookapi.Relation{ID: 3, Interface: "backup", Scope: "global", Ends: []hookapi.End{
			{Service: "backup", Name: "clients", Role: hookapi.Provides, Units: []string{"backup/0"}},
			{Service: "mysql", Name: "backup", Role: hookapi.Consumes, Units: []string{"mysql/0"}},
		}},
		Settings: map[string]map[string]string{
			"backup/0": {"path": "/srv"},
			"mysql/0":  {"private-address": "10.0.3.8"},
		},
	}
}

// dbChanged returns the facts of the db-relation-changed hook that wordpress/0 runs because of mysql/0.
func dbChanged() hookapi.Facts {
	return hookapi.Facts{
		Unit: "wordpress/0", Service: "wordpress", Charm: "wordpress",
		Hook: "db-relation-changed", Dialect: hookapi.Modern,
		Relation: 0, RemoteUnit: "mysql/0", RemoteService: "mysql",
		Members: []string{"mysql/0", "mysql/1", "mysql/10"},
	}
}

// plain returns the facts of a hook without a relation.
func plain(unit, service string) hookapi.Facts {
	return hookapi.Facts{
		Unit: unit, Service: service, Charm: service,
		Hook: "config-changed", Dialect: hookapi.Modern, Relation: hookapi.NoRelation,
	}
}
