package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// server is an ssh server in this process for one fake host. It runs commands here, with the host's
// directory in place of the directory of environments.
type server struct {
	dir     string
	address string

	mu      sync.Mutex
	key     ssh.Signer // the host's key
	accepts ssh.PublicKey
	secret  string                      // the accepted password; "" accepts none
	edit    func(command string) string // edits commands; may be nil
	path    string                      // comes first in the PATH of commands
	wires   sync.Map                    // the existing connections, as net.Conn
}

// newKey returns a new key, and the same key in PEM.
func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	check(t, err)
	return signer, pem.EncodeToMemory(block)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a server that accepts the key. The server, and every process that was left running
// through it, end with the test.
func serve(t *testing.T, accepts ssh.PublicKey) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), accepts: accepts}
	s.key, _ = newKey(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	s.address = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			wire, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.talk(wire) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.cut()
		serving.Wait()
		s.endKeepers()
	})
	return s
}

// set changes the server's settings while it holds the lock.
func (s *server) set(change func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// cut ends all existing connections. It does not end connections that are opened in reaction to it.
func (s *server) cut() {
	var all []net.Conn
	s.wires.Range(func(wire, _ any) bool {
		all = append(all, wire.(net.Conn))
		return true
	})
	for _, wire := range all {
		_ = wire.Close()
	}
}

// endKeepers ends the keepers that a failed test left running.
func (s *server) endKeepers() {
	pids, _ := filepath.Glob(s.dir + "/lib/*/keep.pid")
	for _, path := range pids {
		_ = exec.Command("sh", "-c", `flock -n "$(dirname "$0")/keep.lock" true || kill "$(cat "$0")"`, path).Run()
	}
}

func (s *server) config() *ssh.ServerConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepts, secret := s.accepts, s.secret
	c := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if accepts == nil || string(key.Marshal()) != string(accepts.Marshal()) {
				return nil, errors.New("unknown key")
			}
			return nil, nil
		},
		PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if secret == "" || string(password) != secret {
				return nil, errors.New("wrong password")
			}
			return nil, nil
		},
	}
	c.AddHostKey(s.key)
	return c
}

// talk handles one connection.
func (s *server) talk(wire net.Conn) {
	s.wires.Store(wire, nil)
	defer s.wires.Delete(wire)
	c, channels, requests, err := ssh.NewServerConn(wire, s.config())
	if err != nil {
		_ = wire.Close()
		return
	}
	defer c.Close()
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		serving.Go(func() { s.session(channel, requests) })
	}
}

// session runs the command of one session.
func (s *server) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		code := s.command(string(r.Payload[4:]), channel)
		_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
		return
	}
}

// command runs a command that uses the host's directories in place of this machine's.
func (s *server) command(text string, channel ssh.Channel) int {
	text = strings.NewReplacer("/var/lib/bijou", s.dir+"/lib", "/run/systemd/system", s.dir+"/no-systemd", "/run/bijou/", s.dir+"/run/",
		"/var/lib/juju/", s.dir+"/juju/", "/usr/bin/juju-", s.dir+"/juju-bin/juju-").Replace(text)
	s.mu.Lock()
	edit, path := s.edit, s.path
	s.mu.Unlock()
	if edit != nil {
		text = edit(text)
	}
	c := exec.Command("sh", "-c", text)
	c.Env = []string{"PATH=" + path + os.Getenv("PATH"), "HOME=" + s.dir}
	c.Stdout, c.Stderr = channel, channel.Stderr()
	in, err := c.StdinPipe()
	if err != nil || c.Start() != nil {
		return 255
	}
	go func() { // ends with the channel, which the session closes
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	_ = c.Wait()
	return c.ProcessState.ExitCode()
}
