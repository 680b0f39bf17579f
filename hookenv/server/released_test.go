package server_test

import (
	"os/exec"
	"testing"

	"bijou/hookenv/tools"
	"bijou/testscripts/conformance/hookapitest"
	"bijou/testscripts/conformance/recorded"
	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/need"
)

// TestRecordedByReleasedBinary calls the tools of the released binary, which do their work before Go's
// runtime starts.
func TestRecordedByReleasedBinary(t *testing.T) {
	need.Whole(t)
	runReleased(t, versions.Current(t))
}

// TestRecordedByReleasedBinaryOfARM64 does the same with the binary for arm64, under an emulator.
func TestRecordedByReleasedBinaryOfARM64(t *testing.T) {
	need.Long(t)
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		need.Skip(t, "qemu", err)
	}
	runReleased(t, emulator, "-0", "TOOL", versions.Build(t, []string{"GOARCH=arm64"}))
}

func runReleased(t *testing.T, call ...string) {
	recorded.Run(t, recorded.Cases(t), tools.Supported, func(t testing.TB, s recorded.Setup) recorded.Caller {
		running := hookapitest.NewMemory(t, s.World).Start(s.Facts)
		t.Cleanup(running.Abort)
		h := serveHook(t, running, s.Directory)
		h.program = call
		return h
	})
}
