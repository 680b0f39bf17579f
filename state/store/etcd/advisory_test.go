package etcd_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"bijou/state/store/etcd"
	"bijou/testscripts/kit/need"
)

func TestAdvisories(t *testing.T) {
	const nested, inner, watch = "GHSA-rfx7-8w68-q57q", "GHSA-x35m-3gp4-4fh5", "GHSA-xg4h-6gfc-h4m8"
	all := []string{nested, inner, watch}
	for version, want := range map[string][]string{
		"3.3.27":         all,
		"3.4.41":         all,
		"3.4.42":         {inner, watch},
		"3.4.44":         {watch},
		"3.4.99":         {watch},
		"3.5.8":          all,
		"3.5.27":         all,
		"3.5.28":         {inner, watch},
		"3.5.30":         {watch},
		"3.5.32":         {watch},
		"3.5.33":         nil,
		"3.5.100":        nil,
		"3.6.0":          all,
		"3.6.0-rc.1":     all,
		"3.6.5":          all,
		"3.6.8":          all,
		"3.6.9":          {inner, watch},
		"3.6.11":         {watch},
		"3.6.13":         {watch},
		"3.6.13+git":     {watch},
		"3.6.14":         nil,
		"3.6.16":         nil,
		"3.7.0-rc.0":     {watch},
		"3.7.0":          {watch},
		"3.7.1":          nil,
		"3.7.3":          nil,
		"3.8.0-alpha.0":  nil,
		"4.0.0":          nil,
		"":               nil,
		"3":              nil,
		"3.6":            nil,
		"3.6.":           nil,
		"3.x.1":          nil,
		"not a version":  nil,
		"2.3.8":          nil,
		"3.6.14-0ubuntu": nil,
	} {
		t.Run(version, func(t *testing.T) {
			if diff := cmp.Diff(want, etcd.AdvisoriesFor(version)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// oldServer imitates the part of an etcd that reports its version.
type oldServer struct {
	pb.UnimplementedMaintenanceServer
	version string
	asked   int
}

func (o *oldServer) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	o.asked++
	return &pb.StatusResponse{Header: &pb.ResponseHeader{}, Version: o.version}, nil
}

// TestWarns checks the warnings about servers that are old, new, and away.
func TestWarns(t *testing.T) {
	need.Whole(t)
	for _, c := range []struct{ version, want string }{
		{"3.6.5", "etcd 3.6.5 at unix:"},
		{"3.6.16", ""},
		{"", ""},
	} {
		t.Run(c.version, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			fake := &oldServer{version: c.version}
			if c.version != "" {
				serveOld(t, socket, fake)
			}
			got, err := etcd.AskAdvisories(t.Context(), "etcd+unix://"+socket+"?prefix=/x")
			check(t, err)
			switch text := strings.Join(got, "\n"); {
			case c.want == "" && text != "":
				t.Errorf("warned: %s", text)
			case !strings.Contains(text, c.want), c.want != "" && !strings.Contains(text, "GHSA-rfx7-8w68-q57q"):
				t.Errorf("got %q, want %q", text, c.want)
			}
			if c.version != "" && fake.asked != 1 {
				t.Errorf("it was asked %d times", fake.asked)
			}
		})
	}
}

func serveOld(t *testing.T, socket string, fake *oldServer) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	check(t, err)
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, fake)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
}
