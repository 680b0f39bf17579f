package neco

import "bijou/updater"

type initCmd struct{}

// Help shows how it is used.
func (initCmd) Help() string {
	return `Every other command, and the daemons, want this to be done once. Doing it again changes nothing.

Examples:
  neco init --state etcd://10.0.0.3:2379,10.0.1.3:2379
  neco init --state sqlite:/var/lib/neco/neco.db`
}

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
