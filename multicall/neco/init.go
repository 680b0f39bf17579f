package neco

import "bijou/updater"

type initCmd struct{}

// Run creates neco's keys. It can be repeated.
func (initCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}

	created, err := updater.InitStore(o.ctx, url)
	if err != nil {
		return err
	}

	if created {
		o.note("neco's keys were created; register boot servers with: neco bootserver add LRN")
	} else {
		o.note("neco's keys already exist")
	}
	return nil
}
