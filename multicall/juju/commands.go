package juju

type grammar struct {
	Environment string `short:"e" placeholder:"NAME" help:"The environment; default: $$JUJU_ENV or $$JUJU_MODEL, then the one bootstrapped last."`
	Model       string `short:"m" placeholder:"NAME" help:"The same, by Juju 3's name for it."`
}

type commands struct {
	Bootstrap          bootstrapCmd          `cmd:"" aliases:"add-model" help:"Make an environment and start its background process."`
	Start              startCmd              `cmd:"" help:"Start the background process again, after a crash or a reboot."`
	Stop               stopCmd               `cmd:"" help:"End the background process; the state stays, and juju start goes on."`
	MigrateState       migrateStateCmd       `cmd:"" help:"Move a stopped environment's state to another store, as from one host's file to etcd."`
	Backup             backupCmd             `cmd:"" help:"Write all of an environment's state to one file, while units work."`
	Restore            restoreCmd            `cmd:"" help:"Make an environment of a backup, or put one back."`
	DestroyEnvironment destroyEnvironmentCmd `cmd:"" aliases:"destroy-model" help:"Take an environment down: services, processes, files."`
	Environments       environmentsCmd       `cmd:"" aliases:"models" help:"List the environments, with their stores."`
	ShowModel          showModelCmd          `cmd:"" help:"Show what an environment is."`
	UpgradeJuju        upgradeJujuCmd        `cmd:"" aliases:"upgrade-model,upgrade-controller" help:"Let the environment's agents go over to this binary."`
	Switch             switchCmd             `cmd:"" help:"Choose the environment that commands use without -e."`
	Version            versionCmd            `cmd:"" help:"Print the version of Juju that charms and programs see."`

	Deploy          deployCmd          `cmd:"" help:"Deploy a charm as a service, or a bundle of them."`
	Find            findCmd            `cmd:"" help:"Search the store of charms."`
	Info            infoCmd            `cmd:"" help:"Show what the store has of a charm or bundle."`
	Download        downloadCmd        `cmd:"" help:"Download a charm or bundle of the store."`
	CharmResources  charmResourcesCmd  `cmd:"" aliases:"list-charm-resources" help:"List the resources of a charm of the store."`
	DiffBundle      diffBundleCmd      `cmd:"" help:"Show how a bundle and the environment differ."`
	ExportBundle    exportBundleCmd    `cmd:"" help:"Write the environment as a bundle."`
	AddUnit         addUnitCmd         `cmd:"" help:"Add units to a service."`
	Scale           scaleCmd           `cmd:"" aliases:"scale-application" help:"Add or remove units until an application has that many."`
	AddRelation     addRelationCmd     `cmd:"" aliases:"relate,integrate" help:"Relate two services."`
	DestroyRelation destroyRelationCmd `cmd:"" aliases:"remove-relation" help:"End a relation."`
	UpgradeCharm    upgradeCharmCmd    `cmd:"" aliases:"refresh" help:"Let a service go over to a newer charm."`
	Rollback        rollbackCmd        `cmd:"" help:"Let a service go back to the charm that it ran before."`
	RemoveUnit      removeUnitCmd      `cmd:"" aliases:"destroy-unit" help:"Remove units."`
	DestroyService  destroyServiceCmd  `cmd:"" aliases:"remove-service,remove-application" help:"Remove services with their units and relations."`
	AddMachine      addMachineCmd      `cmd:"" help:"Add machines without units."`
	DestroyMachine  destroyMachineCmd  `cmd:"" aliases:"remove-machine" help:"Remove machines."`

	Expose         exposeCmd         `cmd:"" help:"Mark a service as to be reached from outside."`
	Unexpose       unexposeCmd       `cmd:"" help:"Take that mark away."`
	Set            setCmd            `cmd:"" help:"Set configuration options of a service."`
	Unset          unsetCmd          `cmd:"" help:"Put configuration options of a service back to their defaults."`
	Get            configCmd         `cmd:"" aliases:"config" help:"Show the configuration of a service; config also changes it, as set and unset do."`
	ModelConfig    modelConfigCmd    `cmd:"" help:"Show, set or put back configuration values of the environment."`
	ModelDefaults  modelDefaultsCmd  `cmd:"" aliases:"model-default" help:"Show, set or put back what new environments begin with."`
	SetEnvironment setEnvironmentCmd `cmd:"" help:"Set configuration values of the environment."`
	GetEnvironment getEnvironmentCmd `cmd:"" help:"Show the configuration of the environment."`
	SetConstraints setConstraintsCmd `cmd:"" aliases:"set-model-constraints" help:"Say what machines of units to come have to satisfy."`
	GetConstraints getConstraintsCmd `cmd:"" aliases:"model-constraints,constraints,get-model-constraints" help:"Show what they have to satisfy."`

	AddSecret       addSecretCmd       `cmd:"" help:"Add a secret of the operators'."`
	UpdateSecret    updateSecretCmd    `cmd:"" help:"Change an operators' secret."`
	GrantSecret     grantSecretCmd     `cmd:"" help:"Let services read an operators' secret."`
	RevokeSecret    revokeSecretCmd    `cmd:"" help:"Take that right away."`
	RemoveSecret    removeSecretCmd    `cmd:"" help:"Remove operators' secrets."`
	SetCredential   setCredentialCmd   `cmd:"" help:"Give the credential of a cloud to services that are trusted."`
	Trust           trustCmd           `cmd:"" help:"Let a service have the cloud's credential."`
	RotateSecretKey rotateSecretKeyCmd `cmd:"" help:"Seal all secrets with a new key."`
	Secrets         secretsCmd         `cmd:"" help:"List the secrets, without what they hold."`
	ShowSecret      showSecretCmd      `cmd:"" help:"Show a secret."`

	Run              runCmd              `cmd:"" help:"Run an action of a charm on units and wait for it; behind two dashes, a command."`
	Exec             execCmd             `cmd:"" help:"Run a command on units, by their agents."`
	Actions          actionsCmd          `cmd:"" help:"List what actions a service's charm has."`
	RunAction        runActionCmd        `cmd:"" help:"Run an action of a charm on units."`
	ShowActionOutput showActionOutputCmd `cmd:"" aliases:"show-action,show-operation,show-task" help:"Show what came of an action."`
	ShowActionStatus showActionStatusCmd `cmd:"" aliases:"operations" help:"List actions and commands, and how far they are."`
	CancelAction     cancelActionCmd     `cmd:"" aliases:"cancel-task" help:"End actions that wait or run."`
	Resources        resourcesCmd        `cmd:"" help:"List the resources of a service's charm."`
	AttachResource   attachResourceCmd   `cmd:"" help:"Give a service files for resources of its charm."`

	Storage       storageCmd       `cmd:"" help:"List the storage of units, and what no unit has any more."`
	ShowStorage   showStorageCmd   `cmd:"" help:"Show storage."`
	AddStorage    addStorageCmd    `cmd:"" help:"Give a unit more of a storage of its charm."`
	AttachStorage attachStorageCmd `cmd:"" help:"Give a unit storage that no unit has."`
	DetachStorage detachStorageCmd `cmd:"" help:"Take storage from the unit that has it; what it holds stays."`
	RemoveStorage removeStorageCmd `cmd:"" help:"Remove storage with all that it holds."`

	Status          statusCmd          `cmd:"" aliases:"ps,ls" help:"Show machines, services, units and relations."`
	ShowUnit        showUnitCmd        `cmd:"" help:"Show units, and what they and others have said in their relations."`
	ShowApplication showApplicationCmd `cmd:"" aliases:"show-service" help:"Show services, with their units."`
	ShowStatusLog   showStatusLogCmd   `cmd:"" help:"Show how a unit's status was lately."`
	Wait            waitCmd            `cmd:"" help:"Wait until units have settled, are active, or are gone."`
	Dashboard       dashboardCmd       `cmd:"" help:"Show the environment on a page in a browser, live."`
	Machines        machinesCmd        `cmd:"" help:"List the machines."`
	ShowMachine     showMachineCmd     `cmd:"" help:"Show machines, with their units."`
	Do              doCmd              `cmd:"" help:"Run a command here as if it were a unit's hook; or open a shell as a unit."`
	SSH             sshCmd             `cmd:"" name:"ssh" help:"Open a shell on a unit's machine, or run a command there."`
	SCP             scpCmd             `cmd:"" name:"scp" aliases:"cp" help:"Copy files to a machine, or from there."`
	AddSSHKey       addSSHKeyCmd       `cmd:"" name:"add-ssh-key" help:"Keep public keys with the model; juju ssh needs none."`
	RemoveSSHKey    removeSSHKeyCmd    `cmd:"" name:"remove-ssh-key" help:"Forget public keys."`
	SSHKeys         sshKeysCmd         `cmd:"" name:"ssh-keys" help:"List the public keys that were added."`
	DebugHooks      debugHooksCmd      `cmd:"" aliases:"debug-hook" help:"Run a unit's hooks by hand, in a tmux session."`
	HookHistory     hookHistoryCmd     `cmd:"" help:"Show the last hooks of a unit, and what they wrote."`
	DebugLog        debugLogCmd        `cmd:"" help:"Show what the units' hooks and agents say."`
	Interrupt       interruptCmd       `cmd:"" help:"End the hook, action or command that a unit runs."`
	Resolved        resolvedCmd        `cmd:"" aliases:"resolve" help:"Let a unit, relation or machine in error go on."`

	RetryProvisioning retryProvisioningCmd `cmd:"" help:"Let machines that could not be started be tried again."`

	Documentation      documentationCmd      `cmd:"" help:"List all commands."`
	HelpHookCommands   helpHookCommandsCmd   `cmd:"" aliases:"help-tool,help-tools,hook-tool,hook-tools" help:"List the hook tools, or explain one."`
	HelpActionCommands helpActionCommandsCmd `cmd:"" help:"List the hook tools of actions, or explain one."`
}
