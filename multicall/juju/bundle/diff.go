package bundle

import (
	"maps"
	"slices"

	"bijou/state"
)

// Diff returns how the bundle and the environment, the model, differ, as juju diff-bundle
// prints it. Resources are compared by their sums.
func (c *Comparison) Diff() map[string]any {
	bundle, model, machines, relations := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}
	for name, w := range c.wanted {
		bundle[name] = w.asService().describe()
	}
	for name, s := range c.env.Services {
		model[name] = s.describe()
	}
	for id := range c.Machines {
		if c.machines[id] == "" {
			machines[id] = map[string]any{"missing": "model"}
		}
	}
	for key, list := range map[string][][2]string{"bundle-additions": c.listMissing(), "model-additions": c.listAdditions()} {
		if len(list) > 0 {
			relations[key] = list
		}
	}
	all := map[string]any{"applications": diffParts(bundle, model), "machines": machines, "relations": relations}
	maps.DeleteFunc(all, func(_ string, part any) bool { return len(part.(map[string]any)) == 0 })
	return all
}

func (c *Comparison) listMissing() (list [][2]string) {
	for _, ends := range c.relations {
		if _, isThere := c.findRelation(ends); !isThere {
			list = append(list, formatEnds(ends))
		}
	}
	return list
}

func (c *Comparison) listAdditions() (list [][2]string) {
	for _, r := range c.env.Relations {
		if !r.IsPeer() && !slices.ContainsFunc(c.relations, func(ends []state.Endpoint) bool { return isSame(r.Endpoints, ends) }) {
			list = append(list, formatEnds(r.Endpoints))
		}
	}
	return list
}

// asService returns the service that the bundle wants.
func (w *wanted) asService() Service {
	s := Service{Options: w.options, Units: make([]state.Unit, w.NumUnits), Resources: w.Found.Resources}
	s.Service.Charm, s.Exposed = w.Charm, w.Expose != nil && *w.Expose
	s.Trusted = w.Trust != nil && *w.Trust
	if w.IsSame {
		s.Service.Charm = w.have.Service.Charm
	}
	if w.constraints != nil {
		s.Constraints = *w.constraints
	}
	return s
}

func (s Service) describe() map[string]any {
	sums := map[string]any{}
	for name, r := range s.Resources {
		sums[name] = r.SHA256
	}
	return map[string]any{
		"charm": s.Service.Charm, "num_units": len(s.Units), "expose": s.Exposed, "trust": s.Trusted, "constraints": s.Constraints.String(),
		"options": s.Options, "resources": sums,
	}
}

// diffParts compares two dictionaries key by key, and those in them.
func diffParts(bundle, model map[string]any) map[string]any {
	diff, all := map[string]any{}, maps.Clone(bundle)
	maps.Copy(all, model)
	for key, either := range all {
		of, inBundle := bundle[key].(map[string]any)
		its, inModel := model[key].(map[string]any)
		_, isPart := either.(map[string]any)
		switch {
		case inBundle && inModel:
			if part := diffParts(of, its); len(part) > 0 {
				diff[key] = part
			}
		case isPart && inBundle:
			diff[key] = map[string]any{"missing": "model"}
		case isPart:
			diff[key] = map[string]any{"missing": "bundle"}
		case bundle[key] != model[key]:
			diff[key] = map[string]any{"bundle": bundle[key], "model": model[key]}
		}
	}
	return diff
}

func formatEnds(ends []state.Endpoint) [2]string {
	return [2]string{ends[0].String(), ends[1].String()}
}
