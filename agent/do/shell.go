package do

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// shell is the operator's shell as a command. bash reads a file of ours: the
// operator's own, then what makes the prompt show the unit.
func (r *run) shell(p place) ([]string, error) {
	shell := r.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	if filepath.Base(shell) != "bash" {
		return []string{shell}, nil
	}
	if err := os.WriteFile(p.bashrc(), []byte(bashrc(r.Unit, p.tools())), 0o600); err != nil {
		return nil, fmt.Errorf("cannot prepare the shell: %w", err)
	}
	return []string{shell, "--rcfile", p.bashrc()}, nil
}

// bashrc puts the unit into the prompt, and the tools back to the PATH's front.
func bashrc(unit, tools string) string {
	return fmt.Sprintf(`[ ! -f ~/.bashrc ] || . ~/.bashrc
PS1='(%s) '$PS1
PATH=%s:$PATH
`, unit, quote(tools))
}

// quote makes a text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
