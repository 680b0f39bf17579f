package multicall

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"bijou/multicall/home"
)

// forgetSockets removes the folder of an environment's sockets, which agents
// that were killed leave behind. Its place is the one that agent/socket.go
// chooses: short, since a socket's path may have 107 bytes.
func forgetSockets(e home.Environment) error {
	sum := sha256.Sum256([]byte(e.UUID))
	base := socketBase(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR"))
	if err := os.RemoveAll(filepath.Join(base, hex.EncodeToString(sum[:])[:8])); err != nil {
		return fmt.Errorf("cannot remove sockets: %w", err)
	}
	_ = os.Remove(base) // only if it is empty; the next agent makes it again
	return nil
}

func socketBase(uid int, runtimeDir string) string {
	if uid == 0 {
		return "/run/bijou"
	}
	if info, err := os.Stat(runtimeDir); err == nil && info.IsDir() {
		return filepath.Join(runtimeDir, "bijou")
	}
	return "/tmp/bijou-" + strconv.Itoa(uid)
}
