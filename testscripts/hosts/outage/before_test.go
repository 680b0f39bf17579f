package outage

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// TestBeforeItsStore ends an agent while its store is away, and starts it before the store is back, as if its
// host booted before the store's host.
func TestBeforeItsStore(t *testing.T) {
	need.Long(t)
	c := etcdtest.For(t, etcdtest.Options{})
	w := newWorld(t, c.URL("/outage"))
	services := []string{"hub", "east"}
	w.deployFleet(services, 2)
	w.settle("the deployment")
	check(t, c.Members[0].Kill())
	w.endAgent()
	w.checkRefusal(w.ask("start"), soon)
	mark := w.mark()
	w.startAgent()
	w.eventually("the agent says that it waits", time.Minute, func() string { return lacks(w.log(mark), "cannot start; trying again") })
	rest(15 * time.Second)
	if n := strings.Count(w.log(mark), "cannot start; trying again"); n != 1 {
		t.Errorf("the agent said %d times that it cannot begin, want once:\n%s", n, w.log(mark))
	}
	check(t, c.Members[0].Start())
	w.eventually("the agent runs", time.Minute, func() string { return lacks(w.log(mark), "machine agent runs") })
	w.Juju("set", "hub", "set=turn=after")
	w.settle("the start before the store")
	w.judge("agent before its store", "1 kill")
}

// lacks returns "" if the text contains the words. Otherwise it returns a message with the text.
func lacks(text, words string) string {
	return await.Unless(strings.Contains(text, words), "no %q in:\n%s", words, text)
}

// endAgent stops the background process. The process must end even while its store is away.
func (w *world) endAgent() {
	w.t.Helper()
	pid := w.Agent()
	check(w.t, syscall.Kill(pid, syscall.SIGTERM))
	w.eventually("the agent ends", time.Minute, func() string { return await.Unless(!localenv.Alive(pid), "it lives") })
}

// startAgent starts the agent as a service manager would, without a check.
func (w *world) startAgent() {
	w.t.Helper()
	log, err := os.OpenFile(w.Machine("agent.log"), os.O_APPEND|os.O_WRONLY, 0)
	check(w.t, err)
	defer log.Close()
	cmd := exec.Command("machine-agent", "--machine", "0", "--env", w.Dir())
	cmd.Env, cmd.Stdout, cmd.Stderr = w.Vars, log, log
	check(w.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the destruction of the environment ends the process
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
}
