// Command bijou-provider-sample is a provider of machines that shares no code with bijou. It implements the
// protocol of protocol/provider.proto. Authors can copy it to start a new provider. Its machines are
// processes on this host.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/bijou-provider-sample/protocol"
)

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BIJOU_PROVIDER", MagicCookieValue: "bijou.provider.v1"},
		Plugins:         plugin.PluginSet{"provider": &provider{}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}

// provider keeps a file "sample.pid" in the directory of each machine that it has made. The file has
// the agent's process id and start time, since ids are reused.
type provider struct {
	plugin.NetRPCUnsupportedPlugin
	plugin.GRPCPlugin // implements only the server's half
	protocol.UnimplementedProviderServer
	mu   sync.Mutex // allows one change at a time, so that two starts create one instance
	env  *protocol.ConfigureRequest
	boot time.Duration
}

func (p *provider) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	protocol.RegisterProviderServer(server, p)
	return nil
}

func (p *provider) Configure(_ context.Context, r *protocol.ConfigureRequest) (*protocol.ConfigureResponse, error) {
	p.env = r
	for key, value := range r.Config {
		boot, err := time.ParseDuration(value)
		if key != "boot-time" || err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "cannot use sample.%s=%q: there is boot-time, a duration", key, value)
		}
		p.boot = boot
	}
	return &protocol.ConfigureResponse{}, nil
}

func (p *provider) Capabilities(context.Context, *protocol.CapabilitiesRequest) (*protocol.CapabilitiesResponse, error) {
	return &protocol.CapabilitiesResponse{Name: "sample"}, nil
}

func (p *provider) Start(r *protocol.StartRequest, stream protocol.Provider_StartServer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mark := p.pidFile(r.Machine); runningPID(mark) == 0 {
		if err := p.startAgent(r, mark, stream); err != nil {
			return status.Errorf(codes.Aborted, "cannot start machine %s: %v", r.Machine, err)
		}
	}
	return stream.Send(&protocol.StartResponse{Progress: &protocol.StartResponse_Instance{Instance: p.newInstance(r.Machine, true)}})
}

// startAgent starts the agent in its own session, so that the agent outlives this process.
func (p *provider) startAgent(r *protocol.StartRequest, mark string, stream protocol.Provider_StartServer) error {
	line := &protocol.StartResponse_Boot{Boot: "booting for " + p.boot.String()}
	// If Send fails, the context is done.
	_ = stream.Send(&protocol.StartResponse{Progress: line})
	select {
	case <-time.After(p.boot):
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
	dir := filepath.Dir(mark)
	// The agent needs this directory.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tool := filepath.Join(p.env.Dir, "tools", r.Tools, "machine-agent")
	agent := exec.Command("sh", "-c", `exec "$@" >>agent.log 2>&1`, "sh", tool, "--machine", r.Machine, "--env", p.env.Dir)
	agent.Dir, agent.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	if err := agent.Start(); err != nil {
		return err
	}
	began := startTime(agent.Process.Pid)
	// Without Wait, the agent would remain a zombie after its end.
	go agent.Wait()
	return os.WriteFile(mark, fmt.Appendf(nil, "%d %s\n", agent.Process.Pid, began), 0o600)
}

func (p *provider) Stop(_ context.Context, r *protocol.StopRequest) (*protocol.StopResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark := p.pidFile(strings.TrimPrefix(r.Instance, "sample-"))
	signal, end := syscall.SIGTERM, time.Now().Add(10*time.Second)
	for pid := runningPID(mark); pid != 0; pid = runningPID(mark) {
		if time.Now().After(end) {
			signal = syscall.SIGKILL
		}
		// The process may just have ended.
		_ = syscall.Kill(pid, signal)
		time.Sleep(10 * time.Millisecond)
	}
	return &protocol.StopResponse{}, os.RemoveAll(filepath.Dir(mark))
}

func (p *provider) Instances(context.Context, *protocol.InstancesRequest) (*protocol.InstancesResponse, error) {
	marks, _ := filepath.Glob(p.pidFile("*"))
	all := &protocol.InstancesResponse{}
	for _, mark := range marks {
		all.Instances = append(all.Instances, p.newInstance(filepath.Base(filepath.Dir(mark)), runningPID(mark) != 0))
	}
	return all, nil
}

func (p *provider) pidFile(id string) string {
	return filepath.Join(p.env.Dir, "machines", id, "sample.pid")
}

func (p *provider) newInstance(machine string, runs bool) *protocol.Instance {
	return &protocol.Instance{Id: "sample-" + machine, Environment: p.env.Uuid, Machine: machine, Running: runs}
}

// runningPID returns 0 if the process has ended or never was.
func runningPID(mark string) (pid int) {
	var began string
	data, _ := os.ReadFile(mark)
	if n, _ := fmt.Sscan(string(data), &pid, &began); n != 2 || startTime(pid) != began {
		return 0
	}
	return pid
}

// startTime returns "" if there is no such process (proc(5)).
func startTime(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}
