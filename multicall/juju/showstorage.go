package juju

import "bijou/state"

type showStorageCmd struct {
	Storage    []string `arg:"" help:"Ids of storage, such as data/0."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
}

// Run prints all of the named storage, or none.
func (c showStorageCmd) Run(o *operator) error {
	infos, err := readChosen(o, func(v *state.View) (map[string]storageInfo, error) {
		infos := map[string]storageInfo{}
		for _, id := range c.Storage {
			s, err := v.Storage(id)
			if err != nil {
				return nil, err
			}
			infos[id] = newStorageInfo(s)
		}

		return infos, nil
	})
	if err != nil {
		return err
	}

	return o.encode(c.Format, infos)
}
