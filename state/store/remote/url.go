package remote

import (
	"fmt"
	"path/filepath"
	"strings"
)

const wantURL = "want bijou+unix:///SOCKET"

// parseURL returns the path of the gateway's socket.
func parseURL(url string) (socket string, err error) {
	socket, ok := strings.CutPrefix(url, "bijou+unix://")
	if !ok || !filepath.IsAbs(socket) || filepath.Clean(socket) != socket {
		return "", fmt.Errorf("invalid state URL %q: %s", url, wantURL)
	}
	return socket, nil
}
