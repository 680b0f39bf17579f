package etcdtest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const rootPassword = "r00t"

// EnableUsers has the cluster ask for users from now on: "bijou", with the password,
// who may use what is below the prefix, and root. The prefix begins with a slash.
func (c *Cluster) EnableUsers(ctx context.Context, prefix, password string) error {
	root, err := c.client("", "")
	if err != nil {
		return err
	}
	defer root.Close()
	for _, step := range []func() error{
		func() error { _, err := root.UserAdd(ctx, "root", rootPassword); return err },
		func() error { _, err := root.RoleAdd(ctx, "root"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := root.UserAdd(ctx, "bijou", password); return err },
		func() error { _, err := root.RoleAdd(ctx, "bijou"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "bijou", prefix+"/", clientv3.GetPrefixRangeEnd(prefix+"/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.UserGrantRole(ctx, "bijou", "bijou"); return err },
		func() error { _, err := root.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ChangePassword gives the user "bijou" another password.
func (c *Cluster) ChangePassword(ctx context.Context, password string) error {
	root, err := c.client("root", rootPassword)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.UserChangePassword(ctx, "bijou", password)
	return err
}

func (c *Cluster) client(user, password string) (*clientv3.Client, error) {
	var endpoints []string
	for _, socket := range c.Sockets() {
		endpoints = append(endpoints, "unix://"+socket)
	}
	return clientv3.New(clientv3.Config{Endpoints: endpoints, Username: user, Password: password, Logger: zap.NewNop()})
}
