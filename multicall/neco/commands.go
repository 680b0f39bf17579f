package neco

type grammar struct {
	State string `env:"NECO_STATE" placeholder:"URL" help:"Use neco's keys in this store: etcd://HOST:PORT,HOST:PORT, or sqlite:PATH."`
}

type commands struct {
	Init       initCmd       `cmd:"" help:"Create neco's keys (and the file, if the store is sqlite:PATH)."`
	Bootserver bootserverCmd `cmd:"" help:"Register, unregister, replace and list boot servers."`
	Config     configCmd     `cmd:"" help:"Set, get, list and unset the configuration."`
	Plan       planCmd       `cmd:"" help:"Show the steps of an update."`
	Release    releaseCmd    `cmd:"" without:"state" help:"Create a release of your own components."`
	Key        keyCmd        `cmd:"" without:"state" help:"Create a key that signs releases."`
	Update     updateCmd     `cmd:"" help:"Look for releases at once, or update to a version of your choice."`
	Status     statusCmd     `cmd:"" help:"Show the progress of all servers. Exit code: 0 up to date, 3 updating, 4 stopped, 5 degraded."`
	Stop       stopCmd       `cmd:"" help:"Stop the running update."`
	Pause      pauseCmd      `cmd:"" help:"Let no update start."`
	Resume     resumeCmd     `cmd:"" help:"Let updates start again."`
	Repair     repairCmd     `cmd:"" help:"Restore everything that differs from the last update."`
	Retry      retryCmd      `cmd:"" help:"Run the failed step again."`
	Recover    recoverCmd    `cmd:"" help:"Start a stopped update again from its first step."`
	Diagnose   diagnoseCmd   `cmd:"" help:"Show the activity and the health of a boot server on one screen."`
	History    historyCmd    `cmd:"" help:"List past updates."`
	Dashboard  dashboardCmd  `cmd:"" help:"Show the boot servers live on a page in a browser."`
	Backup     backupCmd     `cmd:"" help:"Write neco's keys to one file, while the daemons work."`
	Restore    restoreCmd    `cmd:"" help:"Restore neco's keys from a backup."`
	Demo       demoCmd       `cmd:"" without:"state" help:"Demonstrate updates on this machine, in half a minute."`
	Notify     notifyCmd     `cmd:"" help:"Test the destinations of alerts."`
}
