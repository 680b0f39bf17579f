package bundle

import (
	"fmt"
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/charm"
)

// chooseStorage lays what the bundle says over what the service's units get, or would get.
func (w *wanted) chooseStorage() (err error) {
	if w.isThere && len(w.Application.Storage) == 0 {
		w.storage = w.have.Storage
		return nil
	}
	asked := map[string]charm.Directive{}
	for name, d := range w.have.Storage {
		if _, kept := w.Meta.Storage[name]; kept {
			asked[name] = d
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Application.Storage)) {
		if _, asked[name], err = charm.ParseDirective(name + "=" + w.Application.Storage[name]); err != nil {
			return err
		}
	}
	if w.storage, err = state.ChooseStorage(*w.Meta, asked); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}
