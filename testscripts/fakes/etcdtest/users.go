package etcdtest

import (
	"encoding/base64"
	"fmt"
	"strings"
)

const rootPassword = "r00t"

// EnableUsers makes the cluster require users. It adds root, and the user "bijou" with the password, who has
// access to the keys below the prefix. The prefix begins with a slash.
func (c *Cluster) EnableUsers(prefix, password string) error {
	// This is the first key after all keys below the prefix.
	end := strings.TrimSuffix(prefix, "/") + "0"
	key := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, step := range [][2]string{
		{"user/add", fmt.Sprintf(`{"name": "root", "password": %q}`, rootPassword)},
		{"role/add", `{"name": "root"}`},
		{"user/grant", `{"user": "root", "role": "root"}`},
		{"user/add", fmt.Sprintf(`{"name": "bijou", "password": %q}`, password)},
		{"role/add", `{"name": "bijou"}`},
		{"role/grant", fmt.Sprintf(`{"name": "bijou", "perm": {"permType": "READWRITE", "key": %q, "range_end": %q}}`, key(prefix+"/"), key(end))},
		{"user/grant", `{"user": "bijou", "role": "bijou"}`},
		{"enable", "{}"},
	} {
		if err := c.Members[0].ask("/v3/auth/"+step[0], step[1], nil); err != nil {
			return err
		}
	}
	return nil
}

// ChangePassword gives the user "bijou" a new password.
func (c *Cluster) ChangePassword(password string) error {
	var login struct{ Token string }
	m := c.Members[0]
	if err := m.ask("/v3/auth/authenticate", fmt.Sprintf(`{"name": "root", "password": %q}`, rootPassword), &login); err != nil {
		return err
	}
	return m.askAs(login.Token, "/v3/auth/user/changepw", fmt.Sprintf(`{"name": "bijou", "password": %q}`, password), nil)
}
