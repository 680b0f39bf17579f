package providers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/ssh"
)

func TestSSHAccessLeavesTheShellToSSHD(t *testing.T) {
	access := sshAccess(ssh.Client{Destination: "me@host"}, "dir")
	for name, test := range map[string]struct{ dir, line, want string }{
		"a command":           {"/a b", "df -h # all", "cd -P '/a b' || exit 1\ndf -h # all"},
		"a shell":             {"/a", "", "cd -P '/a' || exit 1\n" + `exec "${SHELL:-/bin/sh}"`},
		"where a login is at": {"", "cat", "cat"},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"ssh", "--", "me@host", test.want}
			if diff := cmp.Diff(want, access.Run(test.dir, test.line, false).Args); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAddressesForSCP checks that scp does not read an IPv6 address as a host and a file.
func TestAddressesForSCP(t *testing.T) {
	for destination, want := range map[string]string{
		"host":         "host",
		"me@10.0.0.1":  "me@10.0.0.1",
		"me@fd00::1":   "me@[fd00::1]",
		"fd00::1":      "[fd00::1]",
		"192.168.0.10": "192.168.0.10",
	} {
		t.Run(destination, func(t *testing.T) {
			if got := sshAccess(ssh.Client{Destination: destination}, "dir").Host; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestLoginShell checks that a command runs in the shell from the database of users. If that shell is missing
// or refuses logins, the command must run in /bin/sh.
func TestLoginShell(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(own, "#!/bin/sh\necho own \"$@\" in \"$PWD\", SHELL is \"$SHELL\"\n")

	for shell, want := range map[string]string{
		own:                 fmt.Sprintf("own -c echo $0 in %s, SHELL is %s\n", dir, own),
		"/usr/sbin/nologin": "/bin/sh\n",
		"/bin/false":        "/bin/sh\n",
		"/no/such/shell":    "/bin/sh\n",
		"":                  "/bin/sh\n",
	} {
		t.Run(shell, func(t *testing.T) {
			write(filepath.Join(dir, "getent"), "#!/bin/sh\necho 'me:x:1:1:me:/home/me:"+shell+"'\n")
			c := exec.Command("sh", "-c", loginShell, "sh", dir, "echo $0")
			c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SHELL=/bin/elsewhere")
			out, err := c.CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("got %q, %v; want %q", out, err, want)
			}
		})
	}
}
