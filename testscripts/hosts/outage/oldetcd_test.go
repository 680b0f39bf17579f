package outage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// TestOldEtcd checks that bootstrap, migrate-state and a starting agent warn of an etcd whose roles do not
// separate users. No other command requests etcd's version. An etcd that does not report its version must not
// prevent any of this.
func TestOldEtcd(t *testing.T) {
	need.Whole(t)
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
	old := serveOldEtcd(t, cluster, "3.6.5")
	const advisory = "GHSA-rfx7-8w68-q57q"

	w := newWorld(t, old.url("/first"))
	w.eventually("the agent warns", time.Minute, func() string {
		return await.Unless(strings.Contains(w.log(0), advisory), "it has not warned")
	})
	other := w.ask("bootstrap", "-e", "other", "--no-switch", "--state", old.url("/other"))
	if other.code != 0 || !strings.Contains(other.err, "warning: etcd 3.6.5 at unix:") || !strings.Contains(other.err, advisory) {
		t.Errorf("bootstrap has not warned: %s", other)
	}

	asked := old.asked.Load()
	w.Juju("deploy", w.charm, "hub")
	w.Juju("status")
	w.Juju("set", "hub", "set=a=b")
	w.Juju("destroy-environment", "-y", "other")
	if now := old.asked.Load(); now != asked {
		t.Errorf("other commands have asked %d times", now-asked)
	}

	w.Juju("stop")
	file := filepath.Join(t.TempDir(), "state.db")
	w.Juju("migrate-state", "sqlite:"+file)
	moved := w.ask("migrate-state", old.url("/second"))
	if moved.code != 0 || !strings.Contains(moved.err, advisory) {
		t.Errorf("migrate-state has not warned: %s", moved)
	}

	old.refuses.Store(true)
	mark := w.mark()
	w.Juju("start")
	w.awaitStarted("hub/0")
	if said := w.log(mark); strings.Contains(said, advisory) {
		t.Errorf("warned of a version that nobody has said:\n%s", said)
	}
}

// TestOldEtcdOfBootServers checks that each of neco's daemons warns of such an etcd once when it starts. An
// etcd that does not report its version must stop neither of them.
func TestOldEtcdOfBootServers(t *testing.T) {
	need.Whole(t)
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
	old := serveOldEtcd(t, cluster, "3.6.5")
	const advisory = "GHSA-rfx7-8w68-q57q"
	dir := t.TempDir()
	command := func(words ...string) *exec.Cmd {
		self, err := os.Executable()
		check(t, err)
		c := exec.Command(self)
		c.Args = words
		c.Env = append(os.Environ(), "NECO_STATE="+old.url("/neco"))
		return c
	}
	for _, words := range [][]string{{"neco", "init"}, {"neco", "bootserver", "add", "1"}} {
		out, err := command(words...).CombinedOutput()
		if err != nil || strings.Contains(string(out), advisory) {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}

	for _, c := range []struct {
		name, works string
		words       []string
	}{
		{"neco-updater", "msg=leading", []string{"neco-updater"}},
		{"neco-worker", "works for a boot server", []string{"neco-worker", "--lrn", "1", "--dir", filepath.Join(dir, "w"), "--services", "/bin/true"}},
	} {
		for _, refuses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, refused %t", c.name, refuses), func(t *testing.T) {
				old.refuses.Store(refuses)
				before := old.asked.Load()
				logFile, err := os.Create(filepath.Join(t.TempDir(), "log"))
				check(t, err)
				defer logFile.Close()
				daemon := command(c.words...)
				daemon.Stderr = logFile
				check(t, daemon.Start())
				t.Cleanup(func() { _ = daemon.Process.Kill() })
				said := func() string {
					data, err := os.ReadFile(logFile.Name())
					check(t, err)
					return string(data)
				}
				await.Until(t, await.Poll{Limit: time.Minute, Report: said}, "it works, and has asked", func() string {
					isWarned := refuses || strings.Contains(said(), advisory)
					return await.Unless(strings.Contains(said(), c.works) && isWarned && old.asked.Load() > before, "it does not")
				})
				check(t, daemon.Process.Signal(os.Interrupt))
				if err := daemon.Wait(); err != nil {
					t.Errorf("it has ended with %v\n%s", err, said())
				}

				want := map[bool]int{false: 1, true: 0}[refuses]
				if n := strings.Count(said(), advisory); n != want {
					t.Errorf("it has warned %d times, not %d\n%s", n, want, said())
				}
				if n := old.asked.Load() - before; n != 1 {
					t.Errorf("it has asked %d times", n)
				}
			})
		}
	}
}

// oldEtcd is a proxy in front of an etcd that reports a different version.
type oldEtcd struct {
	socket  string
	version string
	asked   atomic.Int64 // the number of requests for the version
	refuses atomic.Bool  // the version that it reports
	server  *grpc.ClientConn
}

func (o *oldEtcd) url(prefix string) string { return "etcd+unix://" + o.socket + "?prefix=" + prefix }

func serveOldEtcd(t *testing.T, c *etcdtest.Cluster, version string) *oldEtcd {
	t.Helper()
	dir, err := os.MkdirTemp("", "old-") // short, since the path of a socket is limited to 107 bytes
	check(t, err)
	o := &oldEtcd{socket: filepath.Join(dir, "s"), version: version}
	o.server, err = grpc.NewClient("unix://"+c.Sockets()[0],
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	check(t, err)
	listener, err := net.Listen("unix", o.socket)
	check(t, err)
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(o.forward))
	go server.Serve(listener)
	t.Cleanup(func() {
		server.Stop()
		o.server.Close()
		os.RemoveAll(dir)
	})
	return o
}

// forward forwards one call in both directions.
func (o *oldEtcd) forward(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	isStatus := method == "/etcdserverpb.Maintenance/Status"
	if isStatus {
		o.asked.Add(1)
		if o.refuses.Load() {
			return errors.New("permission denied")
		}
	}
	sent, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(client.Context(), sent))
	defer cancel()
	server, err := o.server.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}

	go func() {
		for {
			var message []byte
			if client.RecvMsg(&message) != nil {
				server.CloseSend()
				return
			}
			if server.SendMsg(&message) != nil {
				return
			}
		}
	}()
	for {
		var message []byte
		switch err := server.RecvMsg(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if isStatus { // field 2 is the version; if a field occurs twice, the last one counts
			message = fmt.Appendf(message, "\x12%c%s", len(o.version), o.version)
		}
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}

// rawCodec passes messages on as bytes.
type rawCodec struct{}

func (rawCodec) Name() string                        { return "proto" }
func (rawCodec) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}
