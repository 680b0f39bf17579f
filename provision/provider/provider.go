// Package provider defines the contract between the provisioner and the providers, which create machines: the
// Provider interface and the types of its arguments and results.
//
// Providers are in separate packages, such as provision/local. Package providertest tests the contract.
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

// ErrTransient marks the error of a Start that should be retried automatically. Providers wrap it with %w.
// After any other error, the provisioner waits for the operator.
var ErrTransient = errors.New("the start is retried")

// Provider starts and stops the instances of one environment. Its methods must be safe for concurrent use
// by several goroutines, and by several processes on the same environment.
type Provider interface {
	// Capabilities describes the provider. It is fast, and its result never changes.
	Capabilities(ctx context.Context) (Capabilities, error)

	// Start starts an instance for the spec, and returns when the instance's agent can start. It is
	// idempotent for each token: if an instance with that token is running, Start returns it. If that
	// instance has stopped, Start starts it again. While the instance boots, Start writes its output and
	// progress to boot in lines. It does not write to boot after it has returned.
	Start(ctx context.Context, spec Spec, boot io.Writer) (Instance, error)

	// Stop stops the instance, and frees all its resources, including its files. It returns nil if the
	// instance does not exist.
	Stop(ctx context.Context, instance string) error

	// Instances lists the environment's instances, running or stopped, that still use resources. It never
	// lists instances of other environments.
	Instances(ctx context.Context) ([]Instance, error)
}

// Capabilities describe a provider.
type Capabilities struct {
	Name string
	// Isolated is set if each machine has separate processes and files. Otherwise a machine is a part of this
	// host.
	Isolated bool
	// Remote is set if machines are on other hosts, which cannot reach a state in a file on this host.
	Remote bool
}

// Environment describes the environment for which a provider works. The provider gets this description once,
// when it is created.
type Environment struct {
	UUID string // instances are tagged with it
	Name string
	// Dir is the environment's directory on this host. It contains environment.yaml, credentials, and a
	// subdirectory of tools/ for each version of the binary, bijou. An instance's agent is started as
	// machine-agent --machine ID --env DIR, with the same directory or a copy of the files that it needs.
	Dir string
	// Shared is set if the state is a file in Dir. Instances must then share that file.
	Shared bool
	// Config holds the provider's own settings without the provider's name: the key of nspawn.apt-repository is
	// apt-repository.
	Config map[string]string
}

// ReadRecord decodes the environment's record, environment.yaml, into the value to which into points. It returns
// an error that wraps fs.ErrNotExist if there is no record.
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

// Spec describes the instance to start.
type Spec struct {
	Environment string // the environment's UUID; instances are tagged with it
	Machine     string // the machine's ID, such as "3"
	Series      string
	Constraints constraints.Value
	// Placement is the operator's choice of a place for the instance, in the provider's own syntax and
	// without the provider's name: user@host:port for ssh:user@host:port. If it is empty, the provider
	// chooses.
	Placement string
	// Tools is the subdirectory of Environment.Dir/tools with the binary that the agent runs.
	Tools string
	// Token is the same for every Start of the same machine, and differs between machines.
	Token string
	// Instance is the recorded instance of the machine, if there is one. Start must find that instance or start
	// it again. Providers that find instances by their tokens do not need it.
	Instance string
}

// machineID matches the ID of a machine that can be started. Machine 0 is never started.
var machineID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[1-9][0-9]{0,8}\z`)
})

// CheckMachine returns an error if id is not the ID of a machine that can be started. Names of instances
// and directories contain the ID.
func CheckMachine(id string) error {
	if !machineID().MatchString(id) {
		return fmt.Errorf("%q cannot be the id of a machine: want a number from 1 to 999999999", id)
	}
	return nil
}

// Instance is an instance as the provider knows it.
type Instance struct {
	ID          string // the provider's name for the instance
	Environment string // the UUID of the environment for which it was started
	Machine     string // the ID of the machine for which it was started
	Running     bool   // false if the instance has stopped but still uses resources
	// Private and Public are its addresses, as far as the provider knows them.
	Private, Public string
}

// recordFile is the name of the Record in an instance's directory.
const recordFile = "instance.json"

// Record marks a directory as that of an instance. It is for providers that keep no other records.
type Record struct {
	Environment string `json:"environment"`
	Machine     string `json:"machine"`
	Token       string `json:"token"`
	Address     string `json:"address,omitempty"` // empty if the instance has the host's address
}

// Identity implements carry.Identified: the record of a later instance in the same directory keeps no unknown
// fields of the previous one.
func (r Record) Identity() any { return [2]string{r.Machine, r.Token} }

// ReadRecord reads the record in the directory. It returns fs.ErrNotExist if there is no record.
func ReadRecord(dir string) (r Record, err error) {
	exists, err := jsonfile.Read(filepath.Join(dir, recordFile), &r)
	// After an error, exists is true.
	if !exists {
		return r, fs.ErrNotExist
	}
	return r, err
}

// Write writes the record into the instance's directory, which must exist.
func (r Record) Write(dir string) error { return jsonfile.Write(filepath.Join(dir, recordFile), r) }

// RemoveFolder removes the directory of an instance. It removes the record last, so that an interrupted
// removal can be repeated.
func RemoveFolder(dir string) error {
	if err := osutil.RemoveAllBut(dir, recordFile); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
