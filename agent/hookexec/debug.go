package hookexec

import (
	_ "embed"
	"errors"
	"io/fs"
	"path/filepath"
)

// Debug is an operator's tmux session in which a hook is run by hand.
type Debug struct {
	Socket string // of its tmux
	Always bool   // also where the charm has no such hook
}

//go:embed debug.sh
var debugScript string

func (d Debug) windowArgv(s Spec) ([]string, error) {
	path, err := findExecutable(s.CharmDir, filepath.Join("hooks", s.Hook))
	if err != nil && !(d.Always && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	return []string{"/bin/bash", "-c", debugScript, "debug-hooks", d.Socket, s.Hook, path}, nil
}
