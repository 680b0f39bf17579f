package worker

import "bijou/testscripts/kit/updatertest"

// These are the records of one update, which began at t0.
var (
	t0, request, ended, opened = updatertest.T0, updatertest.Request, updatertest.Ended, updatertest.Opened
	at, came, finished, failed = updatertest.At, updatertest.Came, updatertest.Finished, updatertest.Failed
)
