// Package provider is the contract between the provisioner and those who make
// machines: the Provider interface and the values that cross it.
//
// It is no provider itself: provision/local and others are. providertest states
// what each must do. provision and the providers import it.
package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"gopkg.in/yaml.v3"

	"bijou/state/constraints"
	"bijou/state/jsonfile"
	"bijou/state/osutil"
)

// ErrTransient marks a failed Start as worth another try by itself: wrap it
// with %w. Any other failure waits for the operator.
var ErrTransient = errors.New("try again later")

// Provider makes and ends instances of one environment. Methods may be called
// from several goroutines at once, and by several processes on one environment.
type Provider interface {
	// Capabilities describes the provider. It costs nothing and never changes.
	Capabilities(ctx context.Context) (Capabilities, error)

	// Start makes a running instance for the spec and returns when its agent can come up. It is
	// idempotent on the token: while an instance with that token runs, that one is returned; one
	// that has ended is started again. What the instance prints while it boots, and how far it is,
	// goes to boot, line by line; boot is not written to once Start has returned.
	Start(ctx context.Context, spec Spec, boot io.Writer) (Instance, error)

	// Stop ends the instance and frees all it had, its files included. One that
	// is gone already, or never was, is no error.
	Stop(ctx context.Context, instance string) error

	// Instances lists the environment's instances that still have something to
	// free, running or not, and no other environment's.
	Instances(ctx context.Context) ([]Instance, error)
}

// Capabilities describe a provider.
type Capabilities struct {
	Name string
	// Isolated: a machine's processes and files are its own. Without it a
	// machine is a part of this host.
	Isolated bool
	// Remote: machines are on other hosts, so that a state in a file of this one
	// cannot be reached from there.
	Remote bool
}

// Environment holds what a provider must know of the environment that it works for. It is given
// once, when the provider is made.
type Environment struct {
	UUID string // instances carry it as a tag
	Name string
	// Dir is the environment's folder on this host: environment.yaml, the credentials, and below
	// tools/ a folder a version with the binary, bijou. An instance's agent is called as:
	// machine-agent --machine ID --env DIR, with the same folder or a copy of what it needs of it.
	Dir string
	// Shared: the state is a file in Dir, which instances must see as it is.
	Shared bool
	// Config holds the provider's own settings, without its name before them:
	// apt-repository, of nspawn.apt-repository.
	Config map[string]string
}

// ReadRecord decodes environment.yaml into the value.
func (e Environment) ReadRecord(into any) error {
	data, err := os.ReadFile(filepath.Join(e.Dir, "environment.yaml"))
	if err != nil {
		return fmt.Errorf("cannot read the model's record: %w", err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot read the model's record: %w", err)
	}

	return nil
}

// Spec describes the instance that is wanted.
type Spec struct {
	Environment string // uuid; instances carry it as a tag
	Machine     string // the machine's id, "3"
	Series      string
	Constraints constraints.Value
	// Placement is where the operator wants it, in the provider's words without
	// its name: user@host:port, of ssh:user@host:port. Empty: anywhere.
	Placement string
	// Tools names the folder below Environment.Dir/tools of the binary that the agent runs.
	Tools string
	// Token is the same for every Start of the same machine and differs between machines.
	Token string
	// Instance was recorded for the machine, if any was: the same is to be found
	// or started again. A provider that finds it by the token does not need it.
	Instance string
}

var machineID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[1-9][0-9]{0,8}\z`)
})

// CheckMachine refuses a text that is no id of a machine that can be started: names of instances and
// folders contain the id.
func CheckMachine(id string) error {
	if !machineID().MatchString(id) {
		return fmt.Errorf("%q is not the id of a machine that can be started", id)
	}
	return nil
}

// Instance is one instance as its provider knows it.
type Instance struct {
	ID          string // the provider's name for it
	Environment string // the uuid of the environment it was started for
	Machine     string // the machine's id it was started for
	Running     bool   // false: it has ended, but something of it is left
	// Private and Public are where it is reached, as far as the provider knows.
	Private, Public string
}

// recordFile is where a folder has its Record.
const recordFile = "instance.json"

// Record marks a folder as that of an instance, for a provider that keeps nothing elsewhere.
type Record struct {
	Environment string `json:"environment"`
	Machine     string `json:"machine"`
	Token       string `json:"token"`
	Address     string `json:"address,omitempty"` // empty: the host's
}

// Identity tells one instance from the next in the same folder.
func (r Record) Identity() any { return [2]string{r.Machine, r.Token} }

// ReadRecord returns fs.ErrNotExist if the folder has none.
func ReadRecord(dir string) (r Record, err error) {
	there, err := jsonfile.Read(filepath.Join(dir, recordFile), &r)
	if !there {
		err = fs.ErrNotExist
	}
	return r, err
}

// Write writes the record into the instance's directory, which must exist.
func (r Record) Write(dir string) error { return jsonfile.Write(filepath.Join(dir, recordFile), r) }

// RemoveFolder removes the folder of an instance. The record goes last, so that a removal that was
// cut off is repeated.
func RemoveFolder(dir string) error {
	if err := osutil.RemoveAllBut(dir, recordFile); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
