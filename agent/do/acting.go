package do

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
)

// acting is a hook whose writes that take effect at once are logged with the
// name of who wrote them.
type acting struct {
	*hookctx.Context
	run *run
}

// SetStatus sets it, and says so.
func (a acting) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	if err := a.Context.SetStatus(ctx, ofService, s); err != nil {
		return err
	}
	what := "status"
	if ofService {
		what = "status of the service"
	}
	a.Log("INFO", fmt.Sprintf("%s set: %s %q, by %s", what, s.Status, s.Message, a.run.by))
	return nil
}

// operator names who runs this process, and on which host.
func operator() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
