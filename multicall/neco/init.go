package neco

import "bijou/updater"

type initCmd struct{}

// Run creates the keys.
func (initCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}
	made, err := updater.InitStore(o.ctx, url)
	if err != nil {
		return err
	}
	if !made {
		o.note("neco's keys are there already")
		return nil
	}
	o.note("neco's keys were created; register boot servers with: neco bootserver add LRN")
	return nil
}
