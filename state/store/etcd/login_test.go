package etcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"bijou/testscripts/kit/need"
)

// TestLogins checks that a refused password is retried at growing intervals, and that a new password is used
// immediately. An empty file counts as no password.
func TestLogins(t *testing.T) {
	need.Whole(t)
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := &authenticator{config: config{passwordFile: file}, now: func() time.Time { return now }}
	var asked []string
	right := "old"
	login := func() error {
		return l.intercept(t.Context(), "", &pb.AuthenticateRequest{Name: "bijou", Password: "old"}, nil, nil,
			func(_ context.Context, _ string, req, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				asked = append(asked, req.(*pb.AuthenticateRequest).Password)
				if asked[len(asked)-1] != right {
					return rpctypes.ErrGRPCAuthFailed
				}
				return nil
			})
	}
	write("old\n")
	if err := login(); err != nil || l.isRefused() {
		t.Fatal(err)
	}
	right = "new"
	// During a hundred seconds there are retries after 1, 3, 7, 15, 31, 61 and 91 seconds.
	for range 100 {
		if err := login(); !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) || !l.isRefused() {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if want := slices.Repeat([]string{"old"}, 1+8); !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	asked = nil
	write("newer")
	_ = login()
	_ = login()
	write("")
	if err := login(); err == nil || errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) {
		t.Errorf("without a password: %v", err)
	}
	write("new")
	if err := login(); err != nil || l.isRefused() {
		t.Fatal(err)
	}
	if want := []string{"newer", "new"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
}
