package neco

import "bijou/updater"

type initCmd struct{}

func (initCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}

	switch made, err := updater.InitStore(o.ctx, url); {
	case err != nil:
		return err
	case made:
		o.note("neco's keys were created; register boot servers with: neco bootserver add LRN")
	default:
		o.note("neco's keys already exist")
	}

	return nil
}
