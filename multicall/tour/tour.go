// Package tour has the demonstrations for newcomers, `bijou quickstart` and
// `neco demo`. It runs the binary as child processes, with the commands that a
// user would type.
//
// It does not use states or agents directly, and shows only the output of the
// commands.
package tour

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/tour/charms"
	"bijou/state/childenv"
)

// environmentName is the name of the tour's environment.
const environmentName = "quickstart"

// Quickstart is the command line of `bijou quickstart`.
type Quickstart struct {
	Keep bool `help:"Leave everything running at the end, and print the commands to use it."`
}

// Run shows the tour. At the end, and also after an error or a signal, it ends the environment and removes the tour's
// files. It keeps them only if --keep is given and all steps have succeeded.
func (q Quickstart) Run(s console.Streams) (err error) {
	// SIGPIPE arrives if the reader of stdout exits. The tour must still clean up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()

	dir, err := os.MkdirTemp("", "bijou-quickstart-")
	if err != nil {
		return fmt.Errorf("cannot create a directory for the tour: %w", err)
	}

	t := &tour{
		presenter: presenter{
			out:      s.Out,
			coloured: console.CanColour(s.Out),
			environ:  append(childenv.New(os.Environ(), childenv.Tour), "BIJOU_HOME="+dir),
		},
		home: dir,
	}
	err = t.runSteps(ctx)
	if err == nil && q.Keep {
		return t.printNextSteps()
	}

	if ctx.Err() != nil {
		err = errors.New("the tour was interrupted")
	}
	hurried := err != nil // after an error or a signal, do not wait for the units' stop hooks
	return errors.Join(err, t.cleanUp(hurried))
}

// tour is one run of `bijou quickstart`.
type tour struct {
	presenter
	home string // the tour's BIJOU_HOME
}

//go:embed quickstart.txt
var quickstartScript string

// runSteps writes the example charms, and carries out the script of the tour.
func (t *tour) runSteps(ctx context.Context) error {
	if err := charms.Write(filepath.Join(t.home, "charms")); err != nil {
		return err
	}

	values := strings.NewReplacer("{{home}}", t.home)
	verbs := map[string]verb{"settle": t.settle, "show": t.showFile, "fetch": t.fetchPage}
	return t.play(ctx, quickstartScript, values, verbs)
}

const (
	settleTimeout = "3m"    // usually about two seconds
	maxPage       = 1 << 20 // bytes
)

// settle waits until all units are active, and shows the log and the status. It shows both even if the units do not
// become active in time, but not after a signal.
func (t *tour) settle(ctx context.Context, _ ...string) error {
	err := t.runJuju(ctx, "wait", "--for", "active", "--timeout", settleTimeout)
	if ctx.Err() != nil {
		return err
	}

	logErr := t.runJuju(ctx, "debug-log", "-n", "20")
	statusErr := t.runJuju(ctx, "status")
	return errors.Join(err, logErr, statusErr)
}

func (t *tour) runJuju(ctx context.Context, args ...string) error {
	return t.runApplet(ctx, "juju", args...)
}

// showFile prints the path and the text of a file below the units' directories. args has only the file's name. If
// several files have that name, showFile takes the first.
func (t *tour) showFile(_ context.Context, args ...string) error {
	name := args[0]
	path, text, err := t.readUnitFile(name)
	if err != nil {
		return err
	}

	fmt.Fprintf(t.out, "%s\n\n%s\n", path, text)
	return nil
}

// fetchPage prints the page whose address is in a file of a unit, as curl would. args has only the name of the
// file.
func (t *tour) fetchPage(ctx context.Context, args ...string) error {
	name := args[0]
	_, url, err := t.readUnitFile(name)
	if err != nil {
		return err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("cannot fetch the page: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot fetch the page: %w", err)
	}
	defer answer.Body.Close()

	page, err := io.ReadAll(io.LimitReader(answer.Body, maxPage))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return fmt.Errorf("cannot fetch %s: %w", url, err)
	}

	fmt.Fprintf(t.out, "$ curl %s\n\n%s\n", url, strings.TrimSpace(string(page)))
	return nil
}

// readUnitFile finds the first file called name below the units' directories. It returns the file's path, and
// its text without the surrounding white space. It skips directories that it cannot read.
func (t *tour) readUnitFile(name string) (path, text string, err error) {
	units := filepath.Join(t.home, environmentName, "machines", "0", "agents")
	err = filepath.WalkDir(units, func(entryPath string, entry os.DirEntry, _ error) error {
		if entry != nil && !entry.IsDir() && entry.Name() == name {
			path = entryPath
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil || path == "" {
		return "", "", fmt.Errorf("cannot find %s below %q: %w", name, units, errors.Join(err, os.ErrNotExist))
	}

	content, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("cannot show %s: %w", name, err)
	}
	return path, strings.TrimSpace(string(content)), nil
}

// printNextSteps prints how to use the environment that keeps running, and how to end it.
func (t *tour) printNextSteps() error {
	toolsDir := filepath.Join(t.home, environmentName, "tools")
	versions, err := os.ReadDir(toolsDir)
	if err != nil {
		return fmt.Errorf("cannot find the tools: %w", err)
	}
	if len(versions) != 1 {
		return fmt.Errorf("cannot find the tools: %q contains %d directories instead of one", toolsDir, len(versions))
	}
	t.printHeading("The model keeps running. To use it:")

	fmt.Fprintf(t.out, `  export BIJOU_HOME=%s
  export PATH=%s:$PATH

  juju status
  juju add-unit wordpress
  juju config wordpress blog-title='My own title'
  juju debug-log -f
`, t.home, filepath.Join(toolsDir, versions[0].Name()))

	t.printHeading("To end it:")
	fmt.Fprintf(t.out, "  juju destroy-model -y %s && rm -r %s\n", environmentName, t.home)
	return nil
}

// cleanUp destroys the environment, if there is one, and then removes the tour's directory. If hurried is true, it
// destroys the environment by force, so that the units' stop hooks do not run. If the environment cannot be
// destroyed, the directory stays.
func (t *tour) cleanUp(hurried bool) error {
	// The tour's own ctx may be done.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()

	if _, err := os.Stat(filepath.Join(t.home, environmentName)); err == nil {
		args := []string{"destroy-model", "-y", environmentName}
		if hurried {
			args = append(args, "--force")
		}
		if err := t.runJuju(ctx, args...); err != nil {
			return err
		}
	}

	if err := os.RemoveAll(t.home); err != nil {
		return fmt.Errorf("cannot remove the tour's directory: %w", err)
	}

	return nil
}

// presenter prints a tour, and runs this binary's applets for it.
type presenter struct {
	out      io.Writer
	coloured bool
	environ  []string // the environment of the applets
}

// verb carries out a line of a tour's script that does not call an applet.
type verb func(ctx context.Context, args ...string) error

// play carries out a script line by line: "# HEADING", "$ APPLET ARG...", or "VERB ARG...". values replaces
// placeholders such as {{dir}} in the words of the script. verbs must have every verb of the script. After an
// error, play stops.
func (s presenter) play(ctx context.Context, script string, values *strings.Replacer, verbs map[string]verb) error {
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		// Replace in words, not in the line, since a directory's name may have a space.
		for i := range words {
			words[i] = values.Replace(words[i])
		}

		var err error
		switch {
		case len(words) == 0:
			// The line is empty.
		case words[0] == "#":
			s.printHeading("%s", strings.Join(words[1:], " "))
		case words[0] == "$":
			err = s.runApplet(ctx, words[1], words[2:]...)
		default:
			err = verbs[words[0]](ctx, words[1:]...)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// printHeading prints a heading in bold, after an empty line.
func (s presenter) printHeading(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", s.paintText(console.Bold, fmt.Sprintf(format, args...)))
}

// paintText returns the text in a colour, if the output can have colours.
func (s presenter) paintText(c console.Colour, text string) string {
	if !s.coloured {
		return text
	}
	return console.Paint(c, text)
}

// runApplet prints the command line, runs the applet, and prints the applet's output.
func (s presenter) runApplet(ctx context.Context, applet string, args ...string) error {
	out := s.out
	commandLine := "$ " + applet + " " + strings.Join(args, " ")
	if _, err := fmt.Fprintf(out, "\n%s\n", s.paintText(console.Green, commandLine)); err != nil {
		// The reader of the output has closed the pipe. Writing to the pipe would also end the applet.
		out = io.Discard
	}

	cmd := s.newCommand(ctx, applet, args...)
	cmd.Stdout = out
	cmd.Stderr = out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run %s %s: %w", applet, args[0], err)
	}

	return nil
}

// newCommand returns a command that runs an applet of this binary. It uses /proc/self/exe, which also works if the
// file was deleted, as after go run.
func (s presenter) newCommand(ctx context.Context, applet string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = applet
	cmd.Env = s.environ

	// The command has its own process group, so that only the tour reports an interrupt.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
