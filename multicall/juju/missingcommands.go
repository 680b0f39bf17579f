package juju

import (
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
)

// missing are commands of Juju's or another tool's, and what there is instead.
type missing struct{ commands, what, instead string }

func missingCommands() []missing {
	return []missing{
		{"offer offers find-offers show-offer remove-offer consume suspend-relation resume-relation remove-saas", "offers to other models", "deploy both services in one environment: juju integrate A B"},
		{"spaces add-space show-space remove-space rename-space move-to-space reload-spaces subnets bind", "spaces", "all machines reach one another"},
		{"clouds add-cloud show-cloud update-cloud remove-cloud regions add-k8s remove-k8s", "clouds", "juju bootstrap --provider NAME says who makes machines"},
		{"controllers show-controller destroy-controller kill-controller register unregister login logout whoami users add-user", "controllers and users", "an environment is whoever's its folder is: juju models"},
		{"enable-ha", "controllers", "an etcd of three members keeps the state, whichever of them dies: juju migrate-state etcd://HOST:2379,HOST:2379,HOST:2379/bijou/NAME"},
		{"add-ssh-key remove-ssh-key ssh-keys import-ssh-key", "keys of operators", "whoever may read the environment's folder gets in: juju ssh UNIT"},
		{"find info download", "charm store", "give a charm's folder or archive: juju deploy ./mysql.charm"},
		{"storage-pools create-storage-pool update-storage-pool remove-storage-pool", "storage pools of operators'", "juju deploy --storage NAME=POOL, of the pools rootfs, tmpfs and host:/FOLDER"},
		{"wait-for", "queries to wait for", "juju wait [SERVICE...] --for idle, active or gone"},
		{"create-backup", "backups of controllers", "juju backup FILE writes an environment's state to a file"},
		{"scale-application", "number that a service is to have", "juju add-unit SERVICE -n N, or juju remove-unit SERVICE --num-units N"},
		{"up", "such command", "juju bootstrap makes an environment, juju deploy CHARM a service"},
	}
}

// refuseMissing tells whoever knows Juju, or another tool, what there is instead.
func refuseMissing(args []string) error {
	for _, m := range missingCommands() {
		if len(args) > 0 && slices.Contains(strings.Fields(m.commands), args[0]) {
			return console.Hint(
				console.Usage(fmt.Errorf("there is no command %q: bijou has no %s", args[0], m.what)),
				m.instead,
			)
		}
	}

	return nil
}
