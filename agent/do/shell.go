package do

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// shellArgv has bash read a file of ours: the operator's own, then what makes the prompt
// show the unit.
func (r *run) shellArgv(d workDir) ([]string, error) {
	shell := cmp.Or(r.Shell, "/bin/sh")
	if filepath.Base(shell) != "bash" {
		return []string{shell}, nil
	}
	if err := os.WriteFile(d.bashrcPath(), []byte(bashrcText(r.Unit, d.toolsPath())), 0o600); err != nil {
		return nil, fmt.Errorf("cannot prepare the shell: %w", err)
	}
	return []string{shell, "--rcfile", d.bashrcPath()}, nil
}

// bashrcText puts the unit into the prompt, and the tools back to the PATH's front.
func bashrcText(unit, tools string) string {
	return fmt.Sprintf(`[ ! -f ~/.bashrc ] || . ~/.bashrc
PS1='(%s) '$PS1
PATH=%s:$PATH
`, unit, shellQuote(tools))
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
