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

// auditedHook logs who makes the writes of a hook that take effect at once.
type auditedHook struct {
	*hookctx.Context
	run *run
}

// SetStatus sets the status, and logs it.
func (h auditedHook) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	if err := h.Context.SetStatus(ctx, ofService, s); err != nil {
		return err
	}
	what := "status"
	if ofService {
		what = "status of the service"
	}
	h.Log("INFO", fmt.Sprintf("%s set: %s %q, by %s", what, s.Status, s.Message, h.run.operator))
	return nil
}

func operatorName() string {
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
