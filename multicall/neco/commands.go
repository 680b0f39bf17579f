package neco

type grammar struct {
	State string `env:"NECO_STATE" placeholder:"URL" help:"Where neco's keys are: etcd://HOST:PORT,HOST:PORT, or sqlite:PATH."`
}

type commands struct {
	Init       initCmd       `cmd:"" help:"Create neco's keys, and with sqlite: the file."`
	Bootserver bootserverCmd `cmd:"" help:"Register boot servers, unregister them, list them."`
	Config     configCmd     `cmd:"" help:"Set, get, list and unset the configuration."`
	Plan       planCmd       `cmd:"" help:"Show the steps of an update."`
	Release    releaseCmd    `cmd:"" without:"state" help:"Make a release of your own components."`
	Key        keyCmd        `cmd:"" without:"state" help:"Make a key that signs releases."`
	Update     updateCmd     `cmd:"" help:"Look for releases at once, or update to a version of your choice."`
	Status     statusCmd     `cmd:"" help:"Show how far servers are. Exit code: 0 up to date, 3 updating, 4 stopped, 5 degraded."`
	Stop       stopCmd       `cmd:"" help:"Stop the update that runs."`
	Pause      pauseCmd      `cmd:"" help:"Let no update start."`
	Resume     resumeCmd     `cmd:"" help:"Let updates start again."`
	Repair     repairCmd     `cmd:"" help:"Put right what is not as the last update left it."`
	Retry      retryCmd      `cmd:"" help:"Run the step again that failed."`
	Recover    recoverCmd    `cmd:"" help:"Clear a stopped update away, and have it made again."`
	Diagnose   diagnoseCmd   `cmd:"" help:"Show on one screen what a boot server does, and how it is."`
	History    historyCmd    `cmd:"" help:"List the updates that there were."`
	Dashboard  dashboardCmd  `cmd:"" help:"Show it all on a page in a browser, live."`
	Backup     backupCmd     `cmd:"" help:"Write neco's keys to one file, while the daemons work."`
	Restore    restoreCmd    `cmd:"" help:"Make neco's keys those of a backup."`
	Demo       demoCmd       `cmd:"" without:"state" help:"Show it all on this machine, in half a minute."`
	Notify     notifyCmd     `cmd:"" help:"Test where alerts go."`
}
