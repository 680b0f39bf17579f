package juju

// grammar has the options of all commands. The tags are kong's.
type grammar struct {
	Environment string `short:"e" placeholder:"NAME" help:"Use this model. Default: $$JUJU_ENV, else $$JUJU_MODEL, else the model that bootstrap or switch chose last, else the only model."`
	Model       string `short:"m" placeholder:"NAME" help:"Use this model; Juju 3's name of -e."`
}

// commands has a field for each command.
type commands struct {
	Bootstrap    bootstrapCmd    `cmd:"" aliases:"add-model" help:"Create a model and start its background process."`
	Start        startCmd        `cmd:"" help:"Start the background process again, after a crash or a reboot."`
	Stop         stopCmd         `cmd:"" help:"End the background process; the state stays, and juju start continues."`
	MigrateState migrateStateCmd `cmd:"" help:"Move a stopped model's state to a different store, such as from one host's file to etcd."`
	Backup       backupCmd       `cmd:"" help:"Write the whole state of a model to one file, while its units work."`
	Restore      restoreCmd      `cmd:"" help:"Create a model from a backup, or restore a model in place."`
	DestroyModel destroyModelCmd `cmd:"" aliases:"destroy-environment" help:"Remove a model: applications, processes, files."`
	Models       modelsCmd       `cmd:"" aliases:"environments" help:"List the models, with their stores."`
	ShowModel    showModelCmd    `cmd:"" help:"Describe a model."`
	UpgradeModel upgradeModelCmd `cmd:"" aliases:"upgrade-juju,upgrade-controller" help:"Move the model's agents to this binary."`
	Switch       switchCmd       `cmd:"" help:"Choose the model that commands use without -e."`
	Version      versionCmd      `cmd:"" help:"Print the version of Juju that charms and programs see."`

	Deploy            deployCmd            `cmd:"" help:"Deploy a charm as an application, or deploy a bundle of applications."`
	Find              findCmd              `cmd:"" help:"Search the store of charms."`
	Info              infoCmd              `cmd:"" help:"Show the store's information about a charm or bundle."`
	Download          downloadCmd          `cmd:"" help:"Download a charm or bundle from the store."`
	CharmResources    charmResourcesCmd    `cmd:"" aliases:"list-charm-resources" help:"List the resources of a charm in the store."`
	DiffBundle        diffBundleCmd        `cmd:"" help:"Show the differences between a bundle and the model."`
	ExportBundle      exportBundleCmd      `cmd:"" help:"Write the model as a bundle."`
	AddUnit           addUnitCmd           `cmd:"" help:"Add units to an application."`
	Scale             scaleCmd             `cmd:"" aliases:"scale-application" help:"Add or remove units until an application has the given number."`
	Integrate         integrateCmd         `cmd:"" aliases:"add-relation,relate" help:"Integrate two applications by a relation."`
	RemoveRelation    removeRelationCmd    `cmd:"" aliases:"destroy-relation" help:"End a relation."`
	Refresh           refreshCmd           `cmd:"" aliases:"upgrade-charm" help:"Upgrade an application to a newer charm."`
	Rollback          rollbackCmd          `cmd:"" help:"Return an application to the charm that it ran before."`
	RemoveUnit        removeUnitCmd        `cmd:"" aliases:"destroy-unit" help:"Remove units."`
	RemoveApplication removeApplicationCmd `cmd:"" aliases:"destroy-service,remove-service" help:"Remove applications with their units and relations."`
	AddMachine        addMachineCmd        `cmd:"" help:"Add machines without units."`
	RemoveMachine     removeMachineCmd     `cmd:"" aliases:"destroy-machine" help:"Remove machines."`

	Expose         exposeCmd         `cmd:"" help:"Mark an application as reachable from outside."`
	Unexpose       unexposeCmd       `cmd:"" help:"Mark an application as no longer reachable from outside."`
	Set            setCmd            `cmd:"" help:"Set configuration options of an application."`
	Unset          unsetCmd          `cmd:"" help:"Reset configuration options of an application to their defaults."`
	Config         configCmd         `cmd:"" aliases:"get" help:"Show the configuration of an application, or change it, as set and unset do."`
	ModelConfig    modelConfigCmd    `cmd:"" help:"Show, set or reset settings of the model."`
	ModelDefaults  modelDefaultsCmd  `cmd:"" aliases:"model-default" help:"Show, set or reset the initial settings of new models."`
	SetEnvironment setEnvironmentCmd `cmd:"" help:"Set settings of the model."`
	GetEnvironment getEnvironmentCmd `cmd:"" help:"Show the settings of the model."`
	SetConstraints setConstraintsCmd `cmd:"" aliases:"set-model-constraints" help:"Set constraints for machines of units added later."`
	Constraints    constraintsCmd    `cmd:"" aliases:"get-constraints,model-constraints,get-model-constraints" help:"Show the constraints of the model or of an application."`

	AddSecret       addSecretCmd       `cmd:"" help:"Add a secret that operators own."`
	UpdateSecret    updateSecretCmd    `cmd:"" help:"Change a secret that operators own."`
	GrantSecret     grantSecretCmd     `cmd:"" help:"Allow applications to read a secret that operators own."`
	RevokeSecret    revokeSecretCmd    `cmd:"" help:"Revoke the permission of applications to read a secret."`
	RemoveSecret    removeSecretCmd    `cmd:"" help:"Remove secrets that operators own."`
	SetCredential   setCredentialCmd   `cmd:"" help:"Set the cloud credential that trusted applications get."`
	Trust           trustCmd           `cmd:"" help:"Allow an application to get the cloud's credential."`
	RotateSecretKey rotateSecretKeyCmd `cmd:"" help:"Seal all secrets with a new key."`
	Secrets         secretsCmd         `cmd:"" help:"List the secrets, without their content."`
	ShowSecret      showSecretCmd      `cmd:"" help:"Show a secret."`

	Run            runCmd            `cmd:"" help:"Run an action of a charm on units and wait for it; after two dashes, run a command."`
	Exec           execCmd           `cmd:"" help:"Run a command on units, through their agents."`
	Actions        actionsCmd        `cmd:"" help:"List the actions of an application's charm."`
	RunAction      runActionCmd      `cmd:"" help:"Run an action of a charm on units."`
	ShowOperation  showOperationCmd  `cmd:"" aliases:"show-action-output,show-action,show-task" help:"Show the result of an action."`
	Operations     operationsCmd     `cmd:"" aliases:"show-action-status" help:"List actions and commands, and their progress."`
	CancelTask     cancelTaskCmd     `cmd:"" aliases:"cancel-action" help:"End waiting or running actions."`
	Resources      resourcesCmd      `cmd:"" help:"List the resources of an application's charm."`
	AttachResource attachResourceCmd `cmd:"" help:"Attach files to an application as resources of its charm."`

	Storage       storageCmd       `cmd:"" help:"List the storage of units, and detached storage."`
	ShowStorage   showStorageCmd   `cmd:"" help:"Show storage."`
	AddStorage    addStorageCmd    `cmd:"" help:"Add storage to a unit, as its charm defines it."`
	AttachStorage attachStorageCmd `cmd:"" help:"Attach detached storage to a unit."`
	DetachStorage detachStorageCmd `cmd:"" help:"Detach storage from its unit; its content stays."`
	RemoveStorage removeStorageCmd `cmd:"" help:"Remove storage with its content."`

	Status          statusCmd          `cmd:"" aliases:"ps,ls" help:"Show machines, applications, units and relations."`
	ShowUnit        showUnitCmd        `cmd:"" help:"Show units, and the settings in their relations."`
	ShowApplication showApplicationCmd `cmd:"" aliases:"show-service" help:"Show applications, with their units."`
	ShowStatusLog   showStatusLogCmd   `cmd:"" help:"Show the recent statuses of a unit."`
	Wait            waitCmd            `cmd:"" help:"Wait until units have settled, are active, or are gone."`
	Dashboard       dashboardCmd       `cmd:"" help:"Show the model live on a page in a browser."`
	Machines        machinesCmd        `cmd:"" help:"List the machines."`
	ShowMachine     showMachineCmd     `cmd:"" help:"Show machines, with their units."`
	Do              doCmd              `cmd:"" help:"Run a command here as if it were a unit's hook; or open a shell as a unit."`
	SSH             sshCmd             `cmd:"" name:"ssh" help:"Open a shell on a unit's machine, or run a command there."`
	SCP             scpCmd             `cmd:"" name:"scp" aliases:"cp" help:"Copy files to or from a machine."`
	AddSSHKey       addSSHKeyCmd       `cmd:"" name:"add-ssh-key" help:"Store public keys in the model; juju ssh does not need them."`
	RemoveSSHKey    removeSSHKeyCmd    `cmd:"" name:"remove-ssh-key" help:"Remove public keys."`
	SSHKeys         sshKeysCmd         `cmd:"" name:"ssh-keys" help:"List the public keys that were added."`
	DebugHooks      debugHooksCmd      `cmd:"" aliases:"debug-hook" help:"Run a unit's hooks by hand, in a tmux session."`
	HookHistory     hookHistoryCmd     `cmd:"" help:"Show the last hooks of a unit, and the settings that they wrote."`
	DebugLog        debugLogCmd        `cmd:"" help:"Show the log of the units' hooks and agents."`
	Interrupt       interruptCmd       `cmd:"" help:"End the hook, action or command that a unit runs."`
	Resolved        resolvedCmd        `cmd:"" aliases:"resolve" help:"Let a unit, relation or machine that is in error continue."`

	RetryProvisioning retryProvisioningCmd `cmd:"" help:"Retry machines that could not be started."`

	Documentation      documentationCmd      `cmd:"" help:"List all commands."`
	HelpHookCommands   helpHookCommandsCmd   `cmd:"" aliases:"help-tool,help-tools,hook-tool,hook-tools" help:"List the hook tools, or explain one."`
	HelpActionCommands helpActionCommandsCmd `cmd:"" help:"List the hook tools of actions, or explain one."`
}
