// Package tour shows newcomers what bijou does: it drives the binary as child
// processes, with the commands that a user would type.
//
// It knows no state and no agent: whatever it tells, it has from what the
// commands print. Only multicall imports it.
package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/tour/charms"
)

// environment is what the tour calls its environment.
const environment = "quickstart"

// Quickstart is `bijou quickstart`.
type Quickstart struct {
	Keep bool `help:"Leave everything running at the end, and say how to go on."`
}

// Help shows how it is used.
func (Quickstart) Help() string {
	return `Deploys the example charms mysql and wordpress in a throw-away folder, relates them, and shows the
file that wordpress makes of mysql's settings. Needs no root, no packages, no network.

Examples:
  bijou quickstart
  bijou quickstart --keep`
}

// Run plays the tour, and clears away what it made, interrupted or not.
func (q Quickstart) Run(s console.Streams) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "bijou-quickstart-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the tour: %w", err)
	}
	t := &tour{out: s.Out, home: dir, coloured: console.Coloured(s.Out)}
	if err = t.play(ctx); err == nil && q.Keep {
		return t.goOn()
	}
	if ctx.Err() != nil {
		err = errors.New("the tour was interrupted")
	}
	return errors.Join(err, t.clear(err != nil))
}

// tour is one tour under way.
type tour struct {
	out      io.Writer
	home     string // its BIJOU_HOME
	coloured bool
}

// play goes through the tour.
func (t *tour) play(ctx context.Context) error {
	if err := charms.Write(filepath.Join(t.home, "charms")); err != nil {
		return err
	}
	t.say("Two charms, one relation, in %s", t.home)
	for _, command := range [][]string{
		{"bootstrap", "-e", environment},
		{"deploy", filepath.Join(t.home, "charms", "mysql")},
		{"deploy", filepath.Join(t.home, "charms", "wordpress")},
		{"add-relation", "wordpress", "mysql"},
	} {
		if err := t.juju(ctx, command...); err != nil {
			return err
		}
	}
	t.say("Their hooks run now, and talk through the relation's settings:")
	if err := t.watch(ctx); err != nil {
		if ctx.Err() == nil {
			err = errors.Join(err, t.juju(ctx, "debug-log", "-n", "30"))
		}
		return err
	}
	if err := t.juju(ctx, "status"); err != nil {
		return err
	}
	return t.show("wp-config.php")
}

// say prints a line of the story.
func (t *tour) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.coloured {
		text = console.Paint(console.Bold, text)
	}
	fmt.Fprintf(t.out, "\n%s\n", text)
}

// juju shows a command and runs it.
func (t *tour) juju(ctx context.Context, args ...string) error {
	prompt := "$ juju " + strings.Join(args, " ")
	if t.coloured {
		prompt = console.Paint(console.Green, prompt)
	}
	fmt.Fprintf(t.out, "\n%s\n", prompt)
	cmd := t.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = t.out, t.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run juju %s: %w", args[0], err)
	}
	return nil
}

// command is this binary as juju. /proc/self/exe is there even if the file has
// been deleted, as go run does.
func (t *tour) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = "juju"
	cmd.Env = append(without(os.Environ(), "JUJU_", "BIJOU_HOME="), "BIJOU_HOME="+t.home)
	// A group of its own: an interruption is told by the tour alone, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// without leaves out the variables with those prefixes.
func without(environ []string, prefixes ...string) []string {
	var kept []string
	for _, word := range environ {
		drop := false
		for _, p := range prefixes {
			drop = drop || strings.HasPrefix(word, p)
		}
		if !drop {
			kept = append(kept, word)
		}
	}
	return kept
}

// show prints where a file of the units is, and what is in it.
func (t *tour) show(name string) error {
	var path string
	units := filepath.Join(t.home, environment, "machines", "0", "units")
	err := filepath.WalkDir(units, func(p string, d os.DirEntry, err error) error {
		if d != nil && !d.IsDir() && d.Name() == name {
			path = p
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil || path == "" {
		return fmt.Errorf("cannot find %s below %q: %w", name, units, errors.Join(err, os.ErrNotExist))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot show %s: %w", name, err)
	}
	t.say("wordpress made this file of mysql's settings:")
	fmt.Fprintf(t.out, "%s\n\n%s\n", path, strings.TrimSpace(string(text)))
	return nil
}

// goOn says how to use what was left running.
func (t *tour) goOn() error {
	folder := filepath.Join(t.home, environment, "tools")
	tools, err := os.ReadDir(folder)
	if err != nil || len(tools) != 1 {
		return fmt.Errorf("cannot find the tools in %q: %w", t.home, errors.Join(err, os.ErrNotExist))
	}
	t.say("It goes on running. To use it:")
	fmt.Fprintf(t.out, `  export BIJOU_HOME=%s
  export PATH=%s:$PATH

  juju status
  juju add-unit wordpress
  juju set wordpress blog-title='My own title'
  juju debug-log -f
`, t.home, filepath.Join(folder, tools[0].Name()))
	t.say("And to end it:")
	fmt.Fprintf(t.out, "  juju destroy-environment -y %s && rm -r %s\n", environment, t.home)
	return nil
}

// clear takes everything down again; hurried skips the units' stop hooks.
func (t *tour) clear(hurried bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if _, err := os.Stat(filepath.Join(t.home, environment)); err == nil {
		args := []string{"destroy-environment", "-y", environment}
		if hurried {
			args = append(args, "--force")
		}
		if err := t.juju(ctx, args...); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(t.home); err != nil {
		return fmt.Errorf("cannot remove the tour's folder: %w", err)
	}
	return nil
}
