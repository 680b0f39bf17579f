package console

import (
	"fmt"
	"os"
	"os/user"
)

// Caller returns who calls, for records: USER@HOST, with the user who became root by sudo.
// SUDO_USER is not believed of anybody else.
func Caller() string {
	name, suffix := fmt.Sprintf("uid %d", os.Getuid()), ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" && os.Getuid() == 0 {
		name, suffix = sudo, " (sudo)"
	}
	host, _ := os.Hostname()
	return name + "@" + host + suffix
}
