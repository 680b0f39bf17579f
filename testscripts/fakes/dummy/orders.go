package dummy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"bijou/provision/provider"
)

// OrdersFile is the file of orders in the provider's directory. Without it the provider behaves correctly.
const OrdersFile = "orders.json"

// Orders determine how the provider behaves. Each call reads them again.
type Orders struct {
	// Start is by machine. "*" is for all machines without an entry.
	Start map[string]StartOrder `json:"start,omitempty"`
	// Stop gives reasons why instances cannot be stopped, by instance id.
	Stop map[string]string `json:"stop,omitempty"`
	List ListOrder         `json:"list,omitzero"`
}

// StartOrder is an order for the starts of a machine.
type StartOrder struct {
	Boot   []string           `json:"boot,omitempty"`   // the lines of its output
	Pause  time.Duration      `json:"pause,omitempty"`  // after each line, or once if there are none
	Hang   bool               `json:"hang,omitempty"`   // until it is cancelled
	Fail   string             `json:"fail,omitempty"`   // permanently
	Busy   string             `json:"busy,omitempty"`   // temporarily
	Crash  int                `json:"crash,omitempty"`  // how many times the process dies once the instance exists
	Answer *provider.Instance `json:"answer,omitempty"` // a false answer
}

// ListOrder is an order for the list of instances.
type ListOrder struct {
	Fail string              `json:"fail,omitempty"`
	Hang bool                `json:"hang,omitempty"` // until it is cancelled
	Omit []string            `json:"omit,omitempty"` // ids
	Add  []provider.Instance `json:"add,omitempty"`  // in addition to the real ones
}

// Give writes the orders of the provider in dir.
func Give(dir string, o Orders) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, OrdersFile), data, 0o644)
}

// orders reads the orders.
func (p *Provider) orders() (o Orders, err error) {
	data, err := os.ReadFile(filepath.Join(p.dir, OrdersFile))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("cannot read the dummy's orders: %w", err)
	}
	return o, nil
}

// start returns the order for a machine.
func (o Orders) start(machine string) StartOrder {
	if own, ok := o.Start[machine]; ok {
		return own
	}
	return o.Start["*"]
}
