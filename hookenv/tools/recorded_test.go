package tools_test

import (
	"context"
	"os"
	"testing"
	"time"

	"bijou/hookenv"
	"bijou/hookenv/client/wire"
	"bijou/hookenv/hookapi"
	"bijou/hookenv/tools"
	"bijou/testscripts/conformance/hookapitest"
	"bijou/testscripts/conformance/recorded"
)

// direct runs tools in this process.
type direct struct{ hook hookapi.Hook }

func openDirect(t testing.TB, s recorded.Setup) recorded.Caller {
	running := hookapitest.NewMemory(t, s.World).Start(s.Facts)
	t.Cleanup(running.Abort)
	return direct{running}
}

// Call acts like the thin client. The tools see no difference.
func (d direct) Call(t testing.TB, step recorded.Step) recorded.Outcome {
	call := hookenv.Call{Argv: step.Argv, Stdin: wire.StdinNone, Files: here{step.Stdin}, Now: fixedNow}
	if step.Stdin != nil {
		call.Stdin = wire.StdinFIFO
	}
	r := tools.Run(context.Background(), d.hook, call)
	if r.OutputPath != "" {
		if err := os.WriteFile(r.OutputPath, r.Stdout, 0o600); err != nil {
			return recorded.Outcome{Exit: 1, Stderr: "ERROR " + err.Error() + "\n"}
		}
		r.Stdout = nil
	}
	return recorded.Outcome{Exit: r.Exit, Stdout: string(r.Stdout), Stderr: string(r.Stderr)}
}

// here reads the files of the working directory.
type here struct{ stdin *string }

func (h here) Read(_ context.Context, path string) ([]byte, error) {
	if path != "-" {
		return os.ReadFile(path)
	}
	if h.stdin == nil {
		return nil, nil
	}
	return []byte(*h.stdin), nil
}

func fixedNow() time.Time { return time.Date(2012, 2, 29, 21, 49, 14, 5, time.UTC) }

func TestRecorded(t *testing.T) {
	recorded.Run(t, recorded.Cases(t), tools.Supported, openDirect)
}

// TestDerived runs the cases of testdata, which have the form of the recorded ones and are derived from
// the rules.
func TestDerived(t *testing.T) {
	for _, name := range []string{"classic", "modern"} {
		f, err := recorded.Read("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { recorded.Run(t, f, tools.Supported, openDirect) })
	}
}
